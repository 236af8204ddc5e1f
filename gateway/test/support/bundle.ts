import { cpSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { checkoutFolder, ensureUi } from '../../../scripts/build-ui.ts'
import { bundleGateway } from '../../../scripts/bundle.ts'

// Global setup of the tests over real sockets: they start the bundle, as users do, which takes less CPU time
// than the source. `package.json` is one folder above it, as in the package, and the console is beside it.

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Several projects have this setup; modules are loaded once for each of them, and one build serves all. */
const shared: typeof globalThis & { tollgateTestBundle?: Promise<void> } = globalThis

export default function setup(): Promise<void> {
  shared.tollgateTestBundle ??= bundle()
  return shared.tollgateTestBundle
}

async function bundle(): Promise<void> {
  process.chdir(root)
  await ensureUi()
  await bundleGateway('gateway/dist-test')
  cpSync(checkoutFolder, 'gateway/dist-test/ui', { recursive: true })
}
