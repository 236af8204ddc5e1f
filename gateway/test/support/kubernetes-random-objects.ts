import fc from 'fast-check'
import { apiVersionOf, type ReadKind, readKindNames, readKinds } from '../../src/kubernetes/objects/kinds.ts'
import { kindSchemas } from '../../src/kubernetes/objects/schemas/schemas.ts'
import { type Shape, shapeOf } from '../../src/schema/shape.ts'

// Random objects that satisfy the schemas of their kinds, and so collide and refer to each other often.

const names = ['a', 'b', 'web']
const namespaces = ['default', 'other']
const kinds = [
  'Gateway',
  'HTTPRoute',
  'GRPCRoute',
  'Service',
  'Secret',
  'ConfigMap',
  'GatewayBackend',
  'Thing',
]
const groups = ['', 'gateway.networking.k8s.io', 'tollgate.dev', 'example.com']
const types = [
  ...[
    'Exact',
    'PathPrefix',
    'RegularExpression',
    'RequestHeaderModifier',
    'ResponseHeaderModifier',
    'URLRewrite',
  ],
  ...['RequestRedirect', 'RequestMirror', 'CORS', 'ExtensionRef', 'ReplaceFullPath', 'ReplacePrefixMatch'],
  ...['ClusterIP', 'ExternalName', 'kubernetes.io/tls', 'Hostname', 'URI', 'IPAddress', 'Later'],
]
const hosts = [
  'a.example.com',
  '*.example.com',
  '*',
  '127.0.0.1',
  '::1',
  'UPPER.example.com',
  'a b',
  '',
  '.',
  'localhost',
]
const expressions = [
  'true',
  'request.path',
  'jwt.sub == "a"',
  'llm.model',
  '1 +',
  'unknown.variable',
  '"text"',
  '',
]
const usualTexts = ['a', '/a', '/a/b', '10', 'x-a']
const unusualTexts = [
  ...[
    '',
    '/',
    '/a/',
    'a/b',
    '//',
    '(',
    '[a-z]+',
    '.*',
    '5s',
    '0s',
    '-1',
    'GET',
    '\u0000',
    'é',
    '*',
    'a\nb',
    '%2f',
  ],
  ...['x'.repeat(300), 'a'.repeat(64), ' ', '$HOME', '$$', '#', '?a=b', '../..', '{', '"'],
]
/** Words by the name of their field, so that objects refer to each other. */
const vocabulary: Readonly<Record<string, readonly string[]>> = {
  name: names,
  namespace: namespaces,
  kind: kinds,
  group: groups,
  type: types,
  sectionName: [...names, 'http', '0'],
  hostname: hosts,
  hostnames: hosts,
  host: hosts,
  gatewayClassName: ['tollgate', 'other'],
  controllerName: ['tollgate.dev/controller', 'example.com/other'],
  protocol: ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP', 'Later'],
  from: ['All', 'Same', 'Selector', 'None'],
  mode: ['Terminate', 'Passthrough', 'AllowValidOnly', 'AllowInsecureFallback'],
  scheme: ['http', 'https', 'ftp'],
  appProtocol: ['kubernetes.io/h2c', 'kubernetes.io/ws', 'tollgate.dev/mcp', 'other'],
  addressType: ['IPv4', 'IPv6', 'FQDN'],
  addresses: ['10.0.0.1', '::1', 'a.default.svc', 'not an address'],
  clusterIP: ['None', '10.0.0.1'],
  request: ['5s', '0s', 'soon', '1h30m'],
  backendRequest: ['5s', '0s', '10s'],
  operator: ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Later'],
}

const smallNumbers = [0, 1, 2, 80, 443, 200, 301, 503, 15_000, 65_535, 1_000_000]

/** A random value of a shape. */
function valueOfShape(shape: Shape, field: string, depth: number): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case 'string': {
      if (shape.meta.format === 'cel') return fc.constantFrom(...expressions)
      if (shape.meta.format === 'duration') return fc.constantFrom('5s', '100ms', '1h')
      if (shape.meta.format === 'url') return fc.constantFrom('https://a.example.com', 'http://127.0.0.1/x')
      return fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom(...(vocabulary[field] ?? usualTexts)) },
        { weight: 1, arbitrary: fc.constantFrom(...unusualTexts) },
      )
    }
    case 'number': {
      const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = shape.meta
      const usual = smallNumbers.filter((value) => value >= min && value <= max)
      return usual.length === 0 ? fc.constant(min) : fc.constantFrom(...usual)
    }
    case 'boolean':
      return fc.boolean()
    case 'enumeration':
      return fc.constantFrom(...shape.values)
    case 'list': {
      const { min = 0, max = 3 } = shape.meta
      const size = { minLength: min, maxLength: Math.max(min, Math.min(max, depth > 0 ? 3 : 0)) }
      return fc.array(valueOfShape(shape.item, field, depth - 1), size)
    }
    case 'map':
      return fc.dictionary(
        fc.constantFrom('a', 'tls.crt', 'ca.crt'),
        valueOfShape(shape.value, field, depth - 1),
        {
          maxKeys: 2,
        },
      )
    case 'object': {
      const known = knownReferences(shape)
      if (known.length === 0) return objectOf(shape, depth)
      return fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...known) },
        { weight: 1, arbitrary: objectOf(shape, depth) },
      )
    }
    case 'choice':
      return fc.oneof(...shape.shapes.map((option) => valueOfShape(option, field, depth)))
    case 'any':
      return fc.constantFrom('a', 1, null, {})
  }
}

const gatewayApi = 'gateway.networking.k8s.io'
const parents = [
  { name: 'web' },
  { name: 'web', sectionName: 'http' },
  { name: 'a' },
  { name: 'web', port: 80 },
]
const targets = [
  ...names.map((name) => ({ group: gatewayApi, kind: 'HTTPRoute', name })),
  { group: gatewayApi, kind: 'Gateway', name: 'web' },
  { group: gatewayApi, kind: 'Gateway', name: 'web', sectionName: 'http' },
  { group: '', kind: 'Service', name: 'a' },
]
const backends = [
  ...names.map((name) => ({ name, port: 80 })),
  ...names.map((name) => ({ group: 'tollgate.dev', kind: 'GatewayBackend', name })),
  { name: 'a', port: 80, weight: 0 },
  { name: 'a', port: 80, namespace: 'other' },
]

/** References to objects that probably exist, for the shape of a reference. */
function knownReferences(shape: Shape & { kind: 'object' }): readonly object[] {
  const has = (...fields: readonly string[]) => fields.every((field) => shape.fields.has(field))
  if (!has('name', 'kind')) return []
  if (has('sectionName', 'port')) return parents
  if (has('sectionName')) return targets
  return has('port') ? backends : []
}

function objectOf(shape: Shape & { kind: 'object' }, depth: number): fc.Arbitrary<unknown> {
  const { exactlyOne } = shape
  const others = [...shape.fields].filter(([name]) => !exactlyOne.includes(name))
  const arbitraries = (fields: typeof others) =>
    Object.fromEntries(
      fields.map(([name, field]) => [name, fc.memo(() => valueOfShape(field.shape, name, depth - 1))()]),
    )
  const required = others.filter(([, field]) => field.required || depth > 0)
  const common = fc.record(arbitraries(required), {
    requiredKeys: others.filter(([, field]) => field.required).map(([name]) => name),
  })
  if (exactlyOne.length === 0) return common
  return fc.constantFrom(...exactlyOne).chain((name) => {
    const field = shape.fields.get(name)
    const chosen = field === undefined ? fc.constant({}) : valueOfShape(field.shape, name, depth - 1)
    return fc.tuple(common, chosen).map(([fields, value]) => ({ ...fields, [name]: value }))
  })
}

const maxDepth = 9

function objectOfKind(kind: ReadKind): fc.Arbitrary<unknown> {
  const { of, schema } = kindSchemas[kind]
  const metadata = fc.record(
    {
      name: fc.constantFrom(...(kind === 'GatewayClass' ? ['tollgate', 'other'] : names)),
      namespace: fc.constantFrom(...namespaces),
      labels: fc.constantFrom({ 'kubernetes.io/service-name': 'a' }, { team: 'a' }),
      creationTimestamp: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
      generation: fc.constant(3),
    },
    { requiredKeys: ['name'] },
  )
  const content = valueOfShape(shapeOf(schema), '', maxDepth)
  return fc.tuple(metadata, content).map(([metadata, content]) => {
    const head = { apiVersion: apiVersionOf(readKinds[kind]), kind, metadata }
    return of === 'spec' ? { ...head, spec: content } : Object.assign(head, content)
  })
}

/** Random objects of all kinds that translations read. */
export function randomObjects(kinds: readonly ReadKind[] = readKindNames): fc.Arbitrary<unknown[]> {
  return fc.array(fc.oneof(...kinds.map(objectOfKind)), { maxLength: 30, size: 'max' })
}
