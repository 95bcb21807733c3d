#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { runQueuescope } from './run-queuescope.mjs';

await runQueuescope(fileURLToPath(new URL('..', import.meta.url)), process.argv.slice(2));
