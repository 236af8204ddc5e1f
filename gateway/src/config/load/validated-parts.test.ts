import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type ConfigTree, createValidatedParts, validateConfig } from './validate.ts'

type Tree = {
  gateways: Record<string, object>
  routes: readonly object[]
  backends: readonly object[]
}

const gateway = fc.constantFrom<object>(
  { port: 80 },
  { port: 81, listeners: [{ name: 'a', hostname: '*.example.com' }] },
  { port: 82, listeners: [{ name: 'a', protocol: 'TCP' }] },
  { port: 0, nonsense: 1 },
)
const backend = fc.constantFrom<object>(
  { name: 'one', host: 'one.test:80' },
  { name: 'one', endpoints: [{ host: '10.0.0.1:80' }] },
  { name: 'one', mcp: { targets: [{ name: 't', mcp: { host: 'http://one.test/mcp' } }] } },
  { name: 'two', ai: { provider: { echo: {} } } },
  { name: 'two', host: 'no port' },
)
const route = fc.record(
  {
    name: fc.constantFrom('r1', 'r2', 'r3', 'r4'),
    gateways: fc.constantFrom('g', 'g/a', 'h', 'missing'),
    hostnames: fc.constantFrom(['x.example.com'], ['other.test'], ['a..b']),
    matches: fc.constantFrom(
      [{ path: { exact: '/a' } }],
      [{ path: { regex: '/a.*' } }],
      [{ path: { regex: '(' } }],
    ),
    backends: fc.constantFrom(
      [{ backend: 'one' }],
      [{ backend: 'two' }],
      [{ backend: 'none' }],
      [{ wrong: 1 }],
    ),
    policies: fc.constantFrom<object>(
      { authorization: { rules: ['request.path == "/"'] } },
      { authorization: { rules: ['nothing.path =='] } },
      { localRateLimit: [{ id: 'shared', maxTokens: 1, fillInterval: '1s' }] },
      { localRateLimit: [{ id: 'shared', maxTokens: 2, fillInterval: '1s' }] },
      { urlRewrite: { path: { prefix: '/b' } } },
    ),
  },
  { requiredKeys: ['name', 'gateways'] },
)

/** Changes one part; the others stay the same objects, as in a configuration of the stream. */
const edit = fc.oneof<fc.Arbitrary<(tree: Tree) => Tree>[]>(
  fc.tuple(fc.nat(250), route).map(([at, value]) => (tree) => ({
    ...tree,
    routes: tree.routes.with(at % tree.routes.length, value),
  })),
  route.map((value) => (tree) => ({ ...tree, routes: [...tree.routes, value] })),
  fc.nat(250).map((at) => (tree) => ({
    ...tree,
    routes: tree.routes.length > 1 ? tree.routes.toSpliced(at % tree.routes.length, 1) : tree.routes,
  })),
  fc.tuple(fc.nat(1), backend).map(([at, value]) => (tree) => ({
    ...tree,
    backends: tree.backends.with(at, value),
  })),
  fc.tuple(fc.constantFrom('g', 'h'), gateway).map(([name, value]) => (tree) => ({
    ...tree,
    gateways: { ...tree.gateways, [name]: value },
  })),
)

/** More routes than are checked in one step. */
const many = Array.from({ length: 205 }, (_, index) => ({
  name: `many-${index}`,
  gateways: 'g',
  backends: [{ backend: 'one' }],
}))

it.each([
  ['few', many.slice(0, 1), 100],
  ['many', many, 15],
])('the issues of an edited configuration of %s routes are those without a cache', (_, routes, runs) => {
  fc.assert(
    fc.property(fc.array(edit, { minLength: 1, maxLength: 12 }), (edits) => {
      const validated = createValidatedParts()
      let tree: Tree = {
        gateways: { g: { port: 80 } },
        routes,
        backends: [
          { name: 'one', host: 'one.test:80' },
          { name: 'two', host: 'two.test:80' },
        ],
      }
      expect(validateConfig(tree, validated)).toEqual([])
      for (const change of edits) {
        tree = change(tree)
        const fresh: ConfigTree = structuredClone(tree)
        expect(validateConfig(tree, validated)).toEqual(validateConfig(fresh))
      }
    }),
    { numRuns: runs },
  )
})
