import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { validateConfig } from '../../src/config/load/validate.ts'
import { createManifestReader } from '../../src/kubernetes/objects/manifests/manifests.ts'
import { parseManifest } from '../../src/kubernetes/objects/manifests/parse-manifest.ts'
import { createTranslator, type Translation } from '../../src/kubernetes/translate/translate.ts'

/**
 * Pairs of manifests and their translation: `in.yaml` contains objects, `out.yaml` the Config of each Gateway
 * and all statuses, without features of classes. Each Config is valid. UPDATE_GOLDEN=1 writes the outputs,
 * to be reviewed before commit.
 */
const update = process.env['UPDATE_GOLDEN'] === '1'
const root = join(import.meta.dirname, 'kubernetes')

describe('golden kubernetes', () => {
  for (const name of readdirSync(root).sort()) {
    it(`translates ${name}`, async () => {
      const objects = await readObjects(join(root, name, 'in.yaml'))
      const translation = createTranslator()(objects)
      for (const { config } of translation.gateways.values()) expect(validateConfig(config)).toEqual([])
      const found = rendered(translation)
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
  return objects
}

function rendered({ gateways, statuses }: Translation): string {
  const sorted = [...gateways].sort(([one], [other]) => (one < other ? -1 : 1))
  const value = { gateways: Object.fromEntries(sorted), statuses }
  return stringify(withoutUndefined(value), { aliasDuplicateObjects: false, lineWidth: 0 })
}

/** As the controller writes it: JSON has no undefined members. */
function withoutUndefined(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member) => (key === 'supportedFeatures' ? undefined : member)),
  )
}
