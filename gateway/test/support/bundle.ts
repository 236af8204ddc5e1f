import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildUi, isCurrent } from '../../../scripts/build-ui.ts'
import { bundleGateway } from '../../../scripts/bundle.ts'

// Global setup of the tests over real sockets: they start the bundle, as users do, which takes less CPU time
// than the source. `package.json` is one folder above it, as in the package, and the console is beside it.

const root = fileURLToPath(new URL('../../..', import.meta.url))
const uiFolder = join(root, '.cache/ui-test')

/** Several projects have this setup; modules are loaded once for each of them, and one build serves all. */
const shared: typeof globalThis & { tollgateTestBundle?: Promise<void> } = globalThis

export default function setup(): Promise<void> {
  shared.tollgateTestBundle ??= bundle()
  return shared.tollgateTestBundle
}

async function bundle(): Promise<void> {
  process.chdir(root)
  if (!isCurrent(uiFolder)) await buildUi(uiFolder)
  await bundleGateway('gateway/dist-test')
  cpSync(uiFolder, 'gateway/dist-test/ui', { recursive: true })
}
