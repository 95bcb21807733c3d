import { useState } from 'preact/hooks';
import type { Device } from '../../src/contract/device.ts';
import { useApp } from '../app-context.ts';
import { hint } from '../ui/hint.tsx';
import { Segmented } from '../ui/segmented.tsx';
import { Switch } from '../ui/switch.tsx';

/** What can only be chosen before a session starts. */
export function StartOptions({ device }: { readonly device: Device }) {
  const { store } = useApp();
  const { id: deviceId } = device;
  return (
    <div class="control-group">
      <Switch
        label="Record"
        hint="Write everything that is measured into a .qscope file, as it comes."
        on={store.drafts.of(deviceId).record}
        onToggle={(record) => store.drafts.setRecord(deviceId, record)}
      />
      {/* An observed interface has the addresses that the system has given it. */}
      {device.mode === 'observe' ? null : <AddressFields key={deviceId} deviceId={deviceId} />}
      <TargetField deviceId={deviceId} />
    </div>
  );
}

function AddressFields({ deviceId }: { readonly deviceId: string }) {
  const { store } = useApp();
  const { address } = store.drafts.of(deviceId).settings;
  // What is typed is not yet an address.
  const [cidr, setCidr] = useState(address.mode === 'static' ? address.cidr : '');
  const [gateway, setGateway] = useState(address.mode === 'static' ? (address.gateway ?? '') : '');
  const setStatic = (newCidr: string, newGateway: string): void => {
    setCidr(newCidr);
    setGateway(newGateway);
    const trimmed = newGateway.trim();
    store.drafts.setAddress(deviceId, {
      mode: 'static',
      cidr: newCidr.trim(),
      ...(trimmed === '' ? {} : { gateway: trimmed }),
    });
  };
  return (
    <>
      <div class="field">
        <span class="field-label">Address</span>
        <Segmented
          label="Address"
          choices={[
            { value: 'dhcp', label: 'DHCP', hint: 'Ask the network that the device leads to.' },
            { value: 'static', label: 'Fixed', hint: 'Use the address that is given here.' },
          ]}
          value={address.mode}
          onChoose={(mode) => {
            if (mode === 'dhcp') store.drafts.setAddress(deviceId, { mode: 'dhcp' });
            else setStatic(cidr, gateway);
          }}
        />
      </div>
      {address.mode === 'static' ? (
        <>
          <TextField
            label="Own address"
            hint="IPv4 address of this end, with the length of the network."
            placeholder="10.9.0.2/24"
            value={cidr}
            onInput={(value) => setStatic(value, gateway)}
          />
          <TextField
            label="Gateway"
            hint="IPv4 address of the next hop, where there is one."
            placeholder="none"
            value={gateway}
            onInput={(value) => setStatic(cidr, value)}
          />
        </>
      ) : null}
    </>
  );
}

function TargetField({ deviceId }: { readonly deviceId: string }) {
  const { store } = useApp();
  return (
    <TextField
      label="Target"
      hint="Where ping and load go; without an address, to the gateway."
      placeholder="the gateway"
      value={store.drafts.of(deviceId).settings.target ?? ''}
      onInput={(value) => store.drafts.setTarget(deviceId, value.trim())}
    />
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly hint: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
}

function TextField({ label, hint: text, placeholder, value, onInput }: TextFieldProps) {
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      <span class="field-box">
        <input
          type="text"
          inputMode="decimal"
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
          {...hint(text)}
        />
      </span>
    </label>
  );
}
