import { z } from 'zod';
import { problemSchema } from './problem.ts';

/** The four ways to a device (DESIGN section 1). */
export const modeSchema = z.enum(['drive', 'remote', 'observe', 'simulate']);
export type Mode = z.infer<typeof modeSchema>;

export const usbSpeedSchema = z.enum(['low', 'full', 'high', 'super', 'super-plus', 'unknown']);
export type UsbSpeedName = z.infer<typeof usbSpeedSchema>;

/**
 * - `available`: could be driven; `unsupported`: recognised, no minidriver; `inaccessible`: no permission or busy
 * - `running`, `lost`: a session has it; lost: it was unplugged and is waited for
 */
export const deviceStateSchema = z.enum(['available', 'unsupported', 'inaccessible', 'running', 'lost']);

/** One line of the device list. */
export const deviceSchema = z.object({
  /** `usb:<bus>-<port path>`, `sim:<name>`, `usbip://<host>[:<port>]/<busid>` or `net:<netdev>`. */
  id: z.string(),
  mode: modeSchema,
  vendorId: z.number().int().optional(),
  productId: z.number().int().optional(),
  name: z.string(),
  manufacturer: z.string().optional(),
  speed: usbSpeedSchema,
  /** What it is to the network: `ethernet` or `wwan`. */
  function: z.enum(['ethernet', 'wwan']).optional(),
  /** Linux's name of the driver that we drive it with. */
  minidriver: z.string().optional(),
  /** Observed devices: the kernel's name of the interface, and of the driver that keeps it. */
  netdev: z.string().optional(),
  kernelDriver: z.string().optional(),
  /** Why this driver, or why none. */
  reason: z.string().optional(),
  state: deviceStateSchema,
  /** The session that has the device, if any. */
  sessionId: z.string().optional(),
  /** One line on what it is, for virtual devices ("USB 3 modem, 10 Mbit/s up"). */
  description: z.string().optional(),
  problems: z.array(problemSchema),
});
export type Device = z.infer<typeof deviceSchema>;
