# `queuescope run` on real usbfs: the cases that drive.test.ts put into /mnt/cases.tsv, one a line:
# name, device (ncm, ecm, rndis, eem or qemu), speed, addressing (dhcp or static), more arguments.

recordings=/run/work/recordings
mkdir -p "$recordings"

# attach DEVICE SPEED ADDRESSING: plugs it in, prepares its far end, and sets $usb.
attach() {
  if [ "$1" = qemu ]; then
    usb=$(usb_device 'RNDIS/QEMU USB Network Device')
    # Configuration 1 is CDC ECM, 2 RNDIS. Its far end, QEMU's user network, is there.
    echo 1 > "/sys/bus/usb/devices/$usb/bConfigurationValue"
    return
  fi
  gadget "$scenario_name" "$1" "$2"
  peer "$scenario_name"
  if [ "$3" = dhcp ]; then dhcp_server "$scenario_name"; fi
  udp_sink
  usb=$(usb_device "$scenario_name")
}

# check_recording FILE: what the stock sqlite3 says of it.
check_recording() {
  fact integrity "$(sqlite3 "$1" 'PRAGMA integrity_check')"
  fact recordedSamples "$(sqlite3 "$1" 'SELECT count(*) FROM samples')"
  fact recordedProbes "$(sqlite3 "$1" 'SELECT count(*) FROM probes')"
  fact recordedLastUs "$(sqlite3 "$1" 'SELECT CAST(max(timeUs) AS INTEGER) FROM samples')"
  cp "$1" "$scenario_folder/run.qscope"
}

drive() {
  local usb recording=$recordings/$scenario_name.qscope code=0
  attach "$1" "$2" "$3"
  fact driverBefore "$(driver_of "$(netdev_of "$usb")")"
  # The rest of the line is words.
  # shellcheck disable=SC2086
  "${queuescope[@]}" run "usb:$usb" --out "$recording" --json $4 \
    > "$scenario_folder/run.jsonl" 2> "$scenario_folder/run.err" || code=$?
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
  [ "$1" = qemu ] || udp_counters
  if [ "$code" -ne 0 ]; then
    cat "$scenario_folder/run.err"
    fail "queuescope run ended with exit code $code"
  fi
  check_recording "$recording"
}

kernel_drivers
while IFS=$'\t' read -r name device speed addressing arguments; do
  scenario "$name" 150 drive "$device" "$speed" "$addressing" "$arguments"
done < /mnt/cases.tsv
