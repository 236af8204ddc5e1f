import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { initializeMessage, post } from '../support/mcp-raw.ts'
import { rawConnect } from '../support/raw-http.ts'
import { type ResourceApi, resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'
import { namedUpstream } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

/**
 * Destinations that resolve to addresses the gateway must not call for others: metadata services, its own
 * admin address.
 */

const resolver = fileURLToPath(new URL('../support/resolver.mjs', import.meta.url))
const names = {
  'metadata.test': '169.254.169.254',
  'azure.test': '168.63.129.16',
  'nat64.test': '64:ff9b::a9fe:a9fe',
  'mapped.test': '::ffff:169.254.169.254',
  'ula.test': 'fd00:ec2::254',
  'admin.test': '127.0.0.1',
  'upstream.test': '127.0.0.1',
}
const options = {
  lifetime: 'file',
  nodeFlags: ['--import', resolver],
  env: { TEST_NAMES: JSON.stringify(names) },
} as const

const refused = 'is a link-local or metadata address'
// Programs and streams of MCP targets log the outer reason only.
const logsRefusal = (lines: string) => lines.includes(refused) || lines.includes('destination refused')
const refusedAdmin = 'is the admin address of this gateway'

type World = { gateway: Gateway; api: ResourceApi; port: number; tcpPort: number }

type Place = {
  kind: string
  name: string
  value: object
  /** The request that has the gateway call the place. */
  ask(world: World): Promise<unknown>
  isPolicy?: true
}

const completion = (model: string) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
})

const llmCall = ({ gateway }: World, model: string) =>
  call(gateway.port, '/v1/chat/completions', completion(model))

/** The end of a connection; its reset may arrive before the client has seen it open. */
const connectionEnd = (port: number): Promise<unknown> =>
  rawConnect(port).then(
    (connection) => connection.closed(),
    () => undefined,
  )

const initialize = ({ gateway }: World) => post(gateway.mcpUrl, initializeMessage)

/** Names its key and is signed with nothing. */
const someToken = [
  { alg: 'RS256', kid: 'k' },
  { iss: 'https://id.test', aud: 'a', exp: 4_102_444_800 },
]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .concat('AAAA')
  .join('.')

const routeTo = (host: string): Place => ({
  kind: 'traffic.route',
  name: host,
  value: {
    gateways: ['default'],
    matches: [{ path: { exact: `/${host}` } }],
    backends: [{ host: `${host}:80` }],
  },
  ask: ({ port }) => call(port, `/${host}`),
})

/** Records of each kind that leads somewhere. */
const places: Place[] = [
  ...['metadata.test', 'azure.test', 'nat64.test', 'mapped.test', 'ula.test'].map(routeTo),
  {
    kind: 'traffic.route',
    name: 'mirrored',
    value: {
      gateways: ['default'],
      matches: [{ path: { exact: '/ai' } }],
      backends: [{ ai: { name: 'ai', provider: { openAI: {} }, hostOverride: 'metadata.test:80' } }],
      policies: { ai: { routes: { '/ai': 'completions' } } },
    },
    ask: ({ port }) => call(port, '/ai', completion('m')),
  },
  {
    kind: 'traffic.route',
    name: 'tokens',
    value: {
      gateways: ['default'],
      matches: [{ path: { exact: '/tokens' } }],
      policies: {
        jwtAuth: { issuer: 'https://id.test', audiences: ['a'], jwks: 'http://metadata.test/keys' },
        directResponse: { status: 200 },
      },
    },
    ask: ({ port }) => call(port, '/tokens', { headers: { authorization: `Bearer ${someToken}` } }),
  },
  {
    kind: 'traffic.tcpRoute',
    name: 'tcp',
    value: { gateways: ['tcp'], backends: [{ host: 'metadata.test:80' }] },
    ask: ({ tcpPort }) => connectionEnd(tcpPort),
  },
  {
    kind: 'llm.model',
    name: 'model',
    value: { provider: 'openai', params: { baseUrl: 'http://metadata.test', apiKey: 'k' } },
    ask: (world) => llmCall(world, 'model'),
  },
  {
    kind: 'mcp.target',
    name: 'tools',
    value: { mcp: { host: 'http://metadata.test/mcp' } },
    ask: initialize,
  },
  {
    kind: 'mcp.target',
    name: 'events',
    value: { sse: { host: 'http://metadata.test/sse' } },
    ask: initialize,
  },
  {
    kind: 'mcp.target',
    name: 'document',
    value: { openapi: { host: 'upstream.test:9', schema: { url: 'http://metadata.test/openapi.json' } } },
    ask: initialize,
  },
  {
    kind: 'llm.policy',
    name: 'guardrails',
    isPolicy: true,
    value: { request: [{ webhook: { target: { host: 'metadata.test:80' } } }] },
    ask: (world) => llmCall(world, 'echo'),
  },
  {
    kind: 'llm.policy',
    name: 'remoteRateLimit',
    isPolicy: true,
    value: {
      host: 'metadata.test:80',
      domain: 'd',
      descriptors: [{ entries: [{ key: 'k', value: '"v"' }] }],
    },
    ask: (world) => llmCall(world, 'echo'),
  },
  {
    kind: 'mcp.policy',
    name: 'mcpAuthentication',
    isPolicy: true,
    value: { issuer: 'http://metadata.test', audiences: ['a'] },
    ask: ({ gateway }) => call(gateway.mcpPort, '/.well-known/oauth-authorization-server'),
  },
]

describe('destinations set through the API', () => {
  let world: World

  beforeAll(async () => {
    const [port = 0, tcpPort = 0] = await freePorts(2)
    const gateway = await startGateway(
      stored(
        {
          gateways: { default: { port }, tcp: { port: tcpPort, protocol: 'TCP' } },
          llm: { models: [{ name: 'echo', provider: 'echo' }] },
          mcp: { targets: [] },
        },
        sqliteUrl(),
      ),
      options,
    )
    world = { gateway, api: resourceApi(gateway), port, tcpPort }
  })

  it.each(places)('$kind $name: a name that resolves to a metadata address is refused', async (place) => {
    const { gateway, api } = world
    const { kind, name, value, isPolicy, ask } = place
    const before = gateway.stdout().length
    if (isPolicy) {
      const { status, body } = await api.ask('PUT', `/${kind}/${name}`, { value })
      expect({ status, body }).toMatchObject({ status: 200 })
    } else await api.create(kind, { name, ...value })
    try {
      await ask(world)
      await until('the refusal is logged', () => logsRefusal(gateway.stdout().slice(before)))
    } finally {
      await api.remove(kind, name)
    }
  })

  it('may still be on this machine', async () => {
    const upstream = await namedUpstream('upstream')
    await world.api.create('traffic.route', {
      name: 'here',
      gateways: ['default'],
      matches: [{ path: { exact: '/here' } }],
      backends: [{ host: `upstream.test:${upstream.port}` }],
    })
    expect((await call(world.port, '/here')).text).toBe('upstream')
  })
})

it('in a file that the API writes, a name may not resolve to a metadata address', async () => {
  const [port = 0] = await freePorts(1)
  const gateway = await startGateway({ gateways: { default: { port } } }, options)
  await resourceApi(gateway).create('traffic.route', {
    name: 'rebound',
    backends: [{ host: 'metadata.test:80' }],
  })
  expect((await call(port, '/')).status).toBe(503)
  await until('the refusal is logged', () => gateway.stdout().includes(refused))
})

describe('the admin address', () => {
  let gateway: Gateway
  let port: number

  beforeAll(async () => {
    ;[port = 0] = await freePorts(1)
    gateway = await startGateway({ gateways: { default: { port } } }, options)
  })

  it.each([
    '127.0.0.1',
    'localhost',
    '0.0.0.0',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:0.0.0.0]',
    'admin.test',
  ])('is no destination of a route as %s', async (host) => {
    const before = gateway.stdout().length
    await gateway.reload({
      gateways: { default: { port } },
      routes: [{ name: host, backends: [{ host: `${host}:${gateway.adminPort}` }] }],
    })
    const answer = await call(port, '/api/config/status', { host: `127.0.0.1:${gateway.adminPort}` })
    expect(answer.status).toBe(503)
    await until('the refusal is logged', () => gateway.stdout().slice(before).includes(refusedAdmin))
  })

  it('is not reached by the name of the machine either', async () => {
    await gateway.reload({
      gateways: { default: { port } },
      routes: [{ name: 'machine', backends: [{ host: `${hostname()}:${gateway.adminPort}` }] }],
    })
    expect((await call(port, '/api/config/status')).status).toBe(503)
  })

  it('is no destination of a TCP route', async () => {
    const before = gateway.stdout().length
    const tcpPort = (await freePorts(1))[0] ?? 0
    await gateway.reload({
      gateways: { default: { port: tcpPort, protocol: 'TCP' } },
      tcpRoutes: [{ backends: [{ host: `localhost:${gateway.adminPort}` }] }],
    })
    await connectionEnd(tcpPort)
    await until('the refusal is logged', () => gateway.stdout().slice(before).includes(refusedAdmin))
  })
})
