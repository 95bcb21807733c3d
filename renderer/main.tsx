import './no-eval.ts';
import { createEngineLink } from './connect.ts';
import { mount } from './mount.tsx';

const root = document.getElementById('app');
if (root !== null) mount(root, createEngineLink());
