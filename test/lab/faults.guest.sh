# What must not end badly when `queuescope run` has a device. See faults.test.ts.

run_arguments=(--address 10.9.0.2/24 --target 10.9.0.1 --json)

# attach: a device with its far end; sets $usb.
attach() {
  gadget "$scenario_name" ncm super
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  netdev_of "$usb" > /dev/null
}

# start NAME ARGUMENT...: starts a run behind, sets $run to its process, and waits until it measures under load.
start() {
  name=$1
  shift
  "${queuescope[@]}" run "usb:$usb" "${run_arguments[@]}" "$@" \
    > "$scenario_folder/$name.jsonl" 2> "$scenario_folder/$name.err" &
  run=$!
  wait_for 60 has_samples "$name" 40
}

recorded() {
  fact integrity "$(sqlite3 "$1" 'PRAGMA integrity_check')"
  fact recordedLastUs "$(sqlite3 "$1" 'SELECT CAST(max(timeUs) AS INTEGER) FROM samples')"
}

unplugged() {
  local usb run recording=/run/work/unplugged.qscope
  attach
  start loaded --duration 60 --out "$recording"
  unplug "$scenario_name"
  end loaded 30
  recorded "$recording"
  cp "$recording" "$scenario_folder/loaded.qscope"
  plug "$scenario_name"
  usb=$(usb_device "$scenario_name")
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

two_programs() {
  local usb run first code=0
  attach
  # Its load leaves the second one time to start.
  start first --duration 120 --load-rate 2M
  first=$run
  "${queuescope[@]}" run "usb:$usb" "${run_arguments[@]}" --duration 2 \
    > "$scenario_folder/second.jsonl" 2> "$scenario_folder/second.err" || code=$?
  fact second "$code"
  "${queuescope[@]}" doctor --json > "$scenario_folder/doctor.json"
  # The first one goes on: as many samples again.
  wait_for 60 has_samples first $(($(grep -c '"type":"sample"' "$scenario_folder/first.jsonl") + 20))
  kill -INT "$first"
  end first 30
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

no_permission() {
  local usb
  attach
  denied without-udev
  # What udev leaves for others to see that it runs.
  mkdir -p /run/udev
  : > /run/udev/control
  denied with-udev
  rm -r /run/udev
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}
denied() {
  local code=0
  setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/run/work \
    "${queuescope[@]}" run "usb:$usb" "${run_arguments[@]}" --duration 2 \
    > "$scenario_folder/$1.jsonl" 2> "$scenario_folder/$1.err" || code=$?
  fact "$1" "$code"
  code=0
  setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/run/work \
    "${queuescope[@]}" doctor > "$scenario_folder/$1-doctor.txt" || code=$?
  fact "$1-doctor" "$code"
}

killed() {
  local usb run recording=/run/work/killed.qscope interface
  attach
  start loaded --duration 60 --out "$recording"
  kill -KILL "$run"
  end loaded 10
  recorded "$recording"
  # The kernel takes the interfaces back once asked to look at them again.
  for interface in "/sys/bus/usb/devices/$usb:"*; do
    echo "${interface##*/}" > /sys/bus/usb/drivers_probe
  done
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

no_such_device() {
  local code=0
  "${queuescope[@]}" run usb:1-9.9 "${run_arguments[@]}" --duration 2 \
    > "$scenario_folder/run.jsonl" 2> "$scenario_folder/run.err" || code=$?
  fact run "$code"
}

kernel_drivers
scenario no-such-device 60 no_such_device
scenario unplugged 150 unplugged
scenario two-programs 240 two_programs
scenario no-permission 90 no_permission
scenario killed 150 killed
