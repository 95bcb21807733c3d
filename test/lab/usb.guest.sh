# The same device through usbfs and through libusb, and `queuescope run` through libusb. See usb.test.ts.

# both_ways PROGRAM WAY: runs it on a device, which is unplugged once the program asks for that.
compare() {
  local usb unplug_file=/run/work/unplug-$1 run code=0
  gadget "$scenario_name" ncm super
  usb=$(usb_device "$scenario_name")
  netdev_of "$usb" > /dev/null
  dmesg --clear
  QUEUESCOPE_USB=$1 "$LAB_NODE" "$LAB_CHECKOUT/dist/usb-program.js" "usb:$usb" "$unplug_file" \
    > "$scenario_folder/steps.json" 2> "$scenario_folder/steps.err" &
  run=$!
  wait_for 60 test -e "$unplug_file" || cat "$scenario_folder/steps.err"
  unplug "$scenario_name"
  end steps 30
  cat "$scenario_folder/steps.err"
  fact resets "$(dmesg | grep -c 'reset .* USB device' || true)"
  fact unclaimed "$(dmesg | grep -c 'did not claim interface' || true)"
  plug "$scenario_name"
  usb=$(usb_device "$scenario_name")
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

through_libusb() {
  local usb
  gadget "$scenario_name" ncm super
  peer "$scenario_name"
  usb=$(usb_device "$scenario_name")
  netdev_of "$usb" > /dev/null
  QUEUESCOPE_USB=libusb "${queuescope[@]}" run "usb:$usb" --address 10.9.0.2/24 --target 10.9.0.1 --duration 3 --json \
    > "$scenario_folder/run.jsonl" 2> "$scenario_folder/run.err" &
  run=$!
  wait_for 60 has_samples run 20
  # The addon is a file of the process where it is in use.
  fact addon "$(grep -c 'usb.*\.node' "/proc/$run/maps" || true)"
  end run 60
  fact driverAfter "$(driver_of "$(netdev_of "$usb")")"
}

kernel_drivers
scenario usbfs 120 compare usbfs
scenario libusb 120 compare libusb
scenario run-through-libusb 120 through_libusb
