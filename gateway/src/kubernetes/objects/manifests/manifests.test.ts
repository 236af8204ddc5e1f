import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createManifestReader } from './manifests.ts'
import { type ManifestFile, parseManifest } from './parse-manifest.ts'

function reader() {
  const parsed: string[] = []
  const read = createManifestReader({
    parse(file) {
      parsed.push(file.name)
      return parseManifest(file)
    },
    yieldPoint: () => undefined,
  })
  return { read, parsed }
}

function namespace(name: string, labels = ''): string {
  return `apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${name}\n${labels}`
}

async function readFiles(...files: ManifestFile[]) {
  return reader().read(files)
}

describe('manifests', () => {
  it('are documents of YAML, of JSON, and items of lists', async () => {
    const list = { apiVersion: 'v1', kind: 'List', items: ['c', 'd'].map((name) => object(name)) }
    const { objects, errors } = await readFiles(
      { name: 'one.yaml', text: `---\n${namespace('a')}---\n# nothing\n---\n${namespace('b')}` },
      { name: 'two.json', text: JSON.stringify(list) },
    )
    expect([...objects.Namespace.keys()]).toEqual(['a', 'b', 'c', 'd'])
    expect(errors).toEqual([])
  })

  it('report the line of each mistake', async () => {
    const { errors, warnings, objects } = await readFiles({
      name: 'a.yaml',
      text: [
        namespace('a'),
        'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n',
        'kind: Namespace\n',
        'apiVersion: v1\nkind: List\nitems:\n  - 1\n',
        'apiVersion: v1\nkind: Namespace\nmetadata: { name: "x }\n',
      ].join('---\n'),
    })
    expect(warnings).toEqual([{ file: 'a.yaml', line: 6, message: 'Deployment of apps/v1 is not read' }])
    expect(errors.map(({ line, message }) => `${line}: ${message}`)).toEqual([
      '10: apiVersion: must be a string',
      '15: an object of the API must be a mapping with apiVersion and kind',
      '20: unclosed quote here or before',
    ])
    expect(objects.Namespace.size).toBe(1)
  })

  it('report objects with the same key', async () => {
    const { errors, objects } = await readFiles(
      { name: 'a.yaml', text: namespace('a') },
      { name: 'b.yaml', text: namespace('a', '  labels: { team: b }\n') },
    )
    expect(errors).toEqual([
      { file: 'b.yaml', line: 1, message: 'Namespace/a must be unique: it is in a.yaml:1 too' },
    ])
    expect(objects.Namespace.get('a')?.metadata.labels).toBeUndefined()
  })

  it('contain invalid objects apart', async () => {
    const { errors, objects } = await readFiles({
      name: 'a.yaml',
      text: 'apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: 80 }\n',
    })
    expect(errors).toEqual([])
    expect(objects.Service.size).toBe(0)
    expect(objects.invalid.get('Service/default/a')?.mistakes).toEqual([
      'spec.ports: expected a list, got a number',
    ])
  })

  it('do not expand references to the environment', async () => {
    const { objects } = await readFiles({
      name: 'a.yaml',
      text: 'apiVersion: v1\nkind: Secret\nmetadata: { name: a }\nstringData: { key: $HOME }\n',
    })
    expect(objects.Secret.get('default/a')?.stringData).toEqual({ key: '$HOME' })
  })

  it('expand aliases up to a limit', async () => {
    const levels = Array.from({ length: 12 }, (_, level) => {
      const inner = level === 0 ? '1' : Array.from({ length: 10 }, () => `*a${level - 1}`).join(', ')
      return `a${level}: &a${level} [${inner}]\n`
    })
    const text = `apiVersion: v1\nkind: Namespace\nmetadata: { name: a }\n${levels.join('')}`
    const { errors } = await readFiles({ name: 'a.yaml', text })
    expect(errors).toHaveLength(1)
    expect(errors[0]?.message).toContain('aliases')
  })

  it('are parsed again only if their text changes, and keep equal objects', async () => {
    const { read, parsed } = reader()
    const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: 80 }] }\n'
    const one = { name: 'one.yaml', text: service }
    const before = await read([one, { name: 'two.yaml', text: namespace('b') }])
    const after = await read([
      { name: 'one.yaml', text: `# moved\n${service}` },
      { name: 'two.yaml', text: namespace('b') },
    ])
    expect(parsed).toEqual(['one.yaml', 'two.yaml', 'one.yaml'])
    expect(after.objects.Service.get('default/a')).toBe(before.objects.Service.get('default/a'))
    expect(after.places.get('Service/default/a')).toEqual({ file: 'one.yaml', line: 2 })
  })

  it('never make parsing throw', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'apiVersion: v1\n',
        'kind: List\n',
        'items:\n',
        '- ',
        '---\n',
        'metadata:\n',
        '  name: a\n',
      ),
      fc.constantFrom(
        '&a ',
        '*a ',
        '{',
        '}',
        '[',
        '"',
        '!!binary ',
        '\t',
        '<<: ',
        '__proto__: 1\n',
        'null\n',
      ),
      fc.string({ maxLength: 10 }),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.json(), (pieces, json) => {
        parseManifest({ name: 'a.yaml', text: pieces.join('') })
        parseManifest({ name: 'a.json', text: json })
      }),
    )
  })
})

function object(name: string) {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
}
