import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { mergeParameters, parameterMistakes } from '../../src/kubernetes/deployer/parameters.ts'
import { render } from '../../src/kubernetes/deployer/render.ts'
import { createManifestReader } from '../../src/kubernetes/objects/manifests/manifests.ts'
import { parseManifest } from '../../src/kubernetes/objects/manifests/parse-manifest.ts'

/**
 * Pairs of manifests and the objects of their proxies: `in.yaml` contains one Gateway and the parameters
 * `class` and `gateway`, `out.yaml` the rendered objects. UPDATE_GOLDEN=1 writes the outputs, to be
 * reviewed before commit.
 */
const update = process.env['UPDATE_GOLDEN'] === '1'
const root = join(import.meta.dirname, 'deployer')

const settings = {
  image: 'registry.example.com/tollgate:1.2.3',
  controllerUrl: 'https://tollgate-controller.tollgate-system.svc:15012',
  caBundle: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
  version: '1.2.3',
}

describe('golden deployer', () => {
  for (const name of readdirSync(root).sort()) {
    it(`renders ${name}`, async () => {
      const { Gateway, GatewayParameters } = await readObjects(join(root, name, 'in.yaml'))
      const [gateway] = Gateway.values()
      if (gateway === undefined) throw new Error('in.yaml has no Gateway')
      const namespace = gateway.metadata.namespace ?? 'default'
      const parameters = mergeParameters(
        GatewayParameters.get(`${namespace}/class`)?.spec,
        GatewayParameters.get(`${namespace}/gateway`)?.spec,
      )
      expect(parameterMistakes(parameters)).toEqual([])
      const objects = render({ gateway, parameters, settings, sessionKey: '0'.repeat(64) })
      const found = stringify(objects, { aliasDuplicateObjects: false, lineWidth: 0 })
      const file = join(root, name, 'out.yaml')
      if (update) writeFileSync(file, found)
      const expected = existsSync(file) ? readFileSync(file, 'utf8') : undefined
      expect(found).toBe(expected)
    })
  }
})

async function readObjects(file: string) {
  const read = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
  const { objects, errors } = await read([{ name: 'in.yaml', text: readFileSync(file, 'utf8') }])
  expect(errors).toEqual([])
  expect([...objects.invalid.values()]).toEqual([])
  return objects
}
