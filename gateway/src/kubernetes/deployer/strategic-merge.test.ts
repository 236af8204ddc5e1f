import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../lib/json/json.ts'
import { applyPatch, combinePatches, unknownDirectives } from './strategic-merge.ts'

const pod: JsonObject = {
  containers: [
    {
      name: 'proxy',
      image: 'a',
      args: ['proxy'],
      env: [
        { name: 'A', value: '1' },
        { name: 'B', value: '2' },
      ],
      ports: [{ containerPort: 80, protocol: 'TCP', name: 'http' }],
      volumeMounts: [{ mountPath: '/tmp', name: 'tmp' }],
    },
  ],
  volumes: [{ name: 'tmp', emptyDir: {} }],
  tolerations: [{ key: 'a' }],
  nodeSelector: { zone: 'a' },
}

describe('applyPatch', () => {
  it.each<[string, JsonObject, JsonObject]>([
    ['adds a field of a map', { nodeSelector: { disk: 'b' } }, { nodeSelector: { zone: 'a', disk: 'b' } }],
    ['removes a field by null', { nodeSelector: { zone: null } }, { nodeSelector: {} }],
    [
      'removes a map by $patch: delete',
      { nodeSelector: { $patch: 'delete' } },
      { nodeSelector: undefined as never },
    ],
    [
      'replaces a map by $patch: replace',
      { nodeSelector: { $patch: 'replace', disk: 'b' } },
      { nodeSelector: { disk: 'b' } },
    ],
    ['replaces lists without key', { tolerations: [{ key: 'b' }] }, { tolerations: [{ key: 'b' }] }],
    [
      'adds an item with a new key',
      { volumes: [{ name: 'more', secret: { secretName: 's' } }] },
      {
        volumes: [
          { name: 'tmp', emptyDir: {} },
          { name: 'more', secret: { secretName: 's' } },
        ],
      },
    ],
    ['removes an item', { volumes: [{ name: 'tmp', $patch: 'delete' }] }, { volumes: [] }],
    [
      'replaces a list',
      { volumes: [{ name: 'only', emptyDir: {} }, { $patch: 'replace' }] },
      { volumes: [{ name: 'only', emptyDir: {} }] },
    ],
  ])('%s', (_, patch, changed) => {
    expect(applyPatch(pod, patch)).toEqual(JSON.parse(JSON.stringify({ ...pod, ...changed })))
  })

  it('merges lists inside of items by their own keys', () => {
    const patch = {
      containers: [
        {
          name: 'proxy',
          args: ['proxy', '--x'],
          env: [
            { name: 'B', value: '3' },
            { name: 'C', value: '4' },
          ],
          ports: [
            { containerPort: 80, name: 'web' },
            { containerPort: 80, protocol: 'UDP' },
          ],
          volumeMounts: [{ mountPath: '/tmp', readOnly: true }],
        },
        { name: 'side', image: 'b' },
      ],
    }
    expect(applyPatch(pod, patch)['containers']).toEqual([
      {
        name: 'proxy',
        image: 'a',
        args: ['proxy', '--x'],
        env: [
          { name: 'A', value: '1' },
          { name: 'B', value: '3' },
          { name: 'C', value: '4' },
        ],
        ports: [
          { containerPort: 80, protocol: 'TCP', name: 'web' },
          { containerPort: 80, protocol: 'UDP' },
        ],
        volumeMounts: [{ mountPath: '/tmp', name: 'tmp', readOnly: true }],
      },
      { name: 'side', image: 'b' },
    ])
  })

  it('does not change its arguments', () => {
    const before = JSON.stringify(pod)
    applyPatch(pod, { containers: [{ name: 'proxy', env: [{ name: 'A', $patch: 'delete' }] }] })
    expect(JSON.stringify(pod)).toBe(before)
  })

  it('creates no directives in new fields', () => {
    expect(applyPatch({}, { a: { $patch: 'replace', b: [{ $patch: 'delete', name: 'x' }] } })).toEqual({
      a: { b: [] },
    })
  })
})

function withSortedItems(object: JsonObject): JsonObject {
  const { env } = object
  const sorted = (items: JsonObject[string][]) => items.map((item) => JSON.stringify(item)).sort()
  return Array.isArray(env) ? { ...object, env: sorted(env) } : object
}

describe('combinePatches', () => {
  const leaf = fc.constantFrom<JsonObject[string]>(1, 'x', null, [1], { $patch: 'delete' })
  const entry = fc.record({ name: fc.constantFrom('a', 'b', 'c') }).chain(({ name }) =>
    fc.oneof(
      fc.constant({ name, $patch: 'delete' }),
      fc.record({ value: leaf }).map(({ value }) => ({ name, value })),
    ),
  )
  const items = fc.uniqueArray(entry, { maxLength: 3, selector: ({ name }) => name })
  const fields = fc.dictionary(fc.constantFrom('p', 'q'), leaf, { maxKeys: 2 })
  const patch: fc.Arbitrary<JsonObject> = fc
    .record(
      {
        env: items,
        map: fc.oneof(
          fields,
          fields.map((some) => ({ ...some, $patch: 'replace' })),
        ),
        leaf,
      },
      { requiredKeys: [] },
    )
    .map((value) => JSON.parse(JSON.stringify(value)))

  it('has the effect of both patches in sequence', () => {
    fc.assert(
      fc.property(patch, patch, patch, (base, first, second) => {
        const plain = applyPatch({}, base)
        const inSequence = applyPatch(applyPatch(plain, first), second)
        const combined = applyPatch(plain, combinePatches(first, second))
        expect(withSortedItems(combined)).toEqual(withSortedItems(inSequence))
      }),
    )
  })
})

describe('unknownDirectives', () => {
  it('returns the paths of directives that are not supported', () => {
    const patch = { a: { $patch: 'delete' }, b: [{ $patch: 'merge' }], c: { $retainKeys: ['x'] } }
    expect(unknownDirectives(patch, 'o')).toEqual(['o.b[0].$patch', 'o.c.$retainKeys'])
  })
})
