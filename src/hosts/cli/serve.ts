import { exitCodes } from '../../base/errors.ts';
import { startWebHost } from '../web/web-host.ts';
import type { Command } from './command.ts';
import { openBrowser } from './open-browser.ts';

export interface ServeOptions {
  readonly port?: number;
  readonly open: boolean;
  readonly json: boolean;
}

/** `queuescope serve`: the app for a browser on this machine, until it is interrupted. */
export const serve: Command<ServeOptions> = async (context, options) => {
  const { api } = await context.engine('web');
  const host = await startWebHost({
    engine: api,
    rendererFolder: context.rendererFolder,
    log: context.log,
    ...(options.port === undefined ? {} : { port: options.port }),
  });
  if (options.json) context.output.json({ url: host.url });
  else context.output.line(host.url);
  if (options.open) openBrowser(host.oneTimeUrl());
  if (!context.interrupted.aborted) {
    await new Promise<void>((resolve) => {
      context.interrupted.addEventListener('abort', () => resolve());
    });
  }
  await host.close();
  return exitCodes.ok;
};
