import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { checkManifests } from './check-manifests.ts'

it('accepts the manifests of the examples', async () => {
  const folder = fileURLToPath(new URL('../../../../examples/kubernetes', import.meta.url))
  const { text, isAccepted } = await checkManifests({ folder, output: 'text', env: {} })
  expect(text).toContain('ok       GatewayPolicy default/models')
  expect(isAccepted, text).toBe(true)
})
