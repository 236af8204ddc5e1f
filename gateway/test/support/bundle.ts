import { fileURLToPath } from 'node:url'
import { bundleGateway } from '../../../scripts/bundle.ts'

// Global setup of the tests over real sockets: they start the bundle, as users do, which takes less CPU time
// than the source. `package.json` is one folder above it, as in the package.

const root = fileURLToPath(new URL('../../..', import.meta.url))

export default async function setup(): Promise<void> {
  process.chdir(root)
  await bundleGateway('gateway/dist-test')
}
