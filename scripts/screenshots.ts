import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// `npm run screenshots`: renews the pictures of the console in docs/images, and takes those of every page in
// both themes in .cache/screenshots.

const { status } = spawnSync(
  'vitest',
  ['run', '--project', 'browser', 'gateway/test/browser/screenshots.test.ts'],
  {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, UPDATE_SCREENSHOTS: '1' },
    stdio: 'inherit',
    shell: process.platform === 'win32',
  },
)
process.exitCode = status ?? 1
