import { beforeAll, describe, expect, it } from 'vitest'
import { isJsonObject } from '../../src/lib/json/json.ts'
import { kinds } from '../../src/resources/kinds.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { initializeMessage, openSession, post } from '../support/mcp-raw.ts'
import { mockOpenAi, openAiKey } from '../support/mock-openai.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'
import { type ResourceApi, resourceApi, sqliteUrl, statusWith, stored } from '../support/resource-api.ts'
import { namedUpstream } from '../support/traffic.ts'

/** Every kind: the effect of a record on the next request, reverted by its deletion. */

const fileKey = 'tg-of-the-file'

type World = {
  gateway: Gateway
  api: ResourceApi
  /** Of the gateways `default` and `raw`, and an unused one. */
  ports: { http: number; tcp: number; free: number }
}

type Case = {
  kind: string
  /** A client request, summarised as a short text. */
  look(world: World): Promise<string>
  before: string
  after: string
  /** The record, and the address it is deleted by. */
  record(world: World): { value: object; address: string } | Promise<{ value: object; address: string }>
  /** Put to its own address, as policies are. */
  isPolicy?: boolean
}

const llm = (model: string) => async (world: World) => String(await statusWith(world.gateway, fileKey, model))

const cases: Case[] = [
  {
    kind: 'modelCatalog',
    async look({ gateway }) {
      const before = gateway.requests().length
      await statusWith(gateway, fileKey)
      return String((await gateway.logged(before + 1))[before]?.['costStatus'])
    },
    before: 'undefined',
    after: 'exact',
    record: () => ({
      value: {
        custom: {
          providers: { echo: { models: { 'from-file': { rates: { input: '1', output: '2' } } } } },
        },
      },
      address: 'default',
    }),
  },
  {
    kind: 'llm.model',
    look: llm('from-api'),
    before: '404',
    after: '200',
    record: () => ({ value: { name: 'from-api', provider: 'echo' }, address: 'from-api' }),
  },
  {
    kind: 'llm.virtualModel',
    look: llm('virtual'),
    before: '404',
    after: '200',
    record: () => ({
      value: { name: 'virtual', routing: { weighted: { targets: [{ model: 'from-file' }] } } },
      address: 'virtual',
    }),
  },
  {
    kind: 'llm.policy',
    look: llm('from-file'),
    before: '200',
    after: '403',
    record: () => ({ value: { rules: [{ deny: 'true' }] }, address: 'authorization' }),
    isPolicy: true,
  },
  {
    kind: 'mcp.target',
    look: whoami,
    before: 'whoami',
    after: 'first_whoami,second_whoami',
    record: () => ({ value: programTarget('second'), address: 'second' }),
  },
  {
    kind: 'mcp.settings',
    look: whoami,
    before: 'whoami',
    after: 'first_whoami',
    record: () => ({ value: { prefixMode: 'always' }, address: 'default' }),
  },
  {
    kind: 'mcp.policy',
    look: async (world) => String((await post(mcpUrl(world), initializeMessage)).status),
    before: '200',
    after: '403',
    record: () => ({ value: { rules: [{ deny: 'true' }] }, address: 'authorization' }),
    isPolicy: true,
  },
  {
    kind: 'traffic.gateway',
    look: ({ ports }) => statusAt(ports.free, '/'),
    before: 'refused',
    after: '404',
    record: ({ ports }) => ({ value: { name: 'extra', port: ports.free }, address: 'extra' }),
  },
  {
    kind: 'traffic.route',
    look: ({ ports }) => statusAt(ports.http, '/made/at/runtime'),
    before: '404',
    after: '200 upstream',
    async record() {
      const upstream = await namedUpstream('upstream')
      const match = { path: { pathPrefix: '/made' } }
      return {
        value: { name: 'made', matches: [match], backends: [{ host: upstream.host }] },
        address: 'made',
      }
    },
  },
  {
    kind: 'traffic.tcpRoute',
    look: ({ ports }) => statusAt(ports.tcp, '/'),
    before: 'refused',
    after: '200 behind TCP',
    async record() {
      const upstream = await namedUpstream('behind TCP')
      return {
        value: { name: 'piped', gateways: 'raw', backends: [{ host: upstream.host }] },
        address: 'piped',
      }
    },
  },
  {
    kind: 'ui.policy',
    async look({ ports }) {
      const headers = { authorization: 'Bearer tg-of-the-ui', origin: 'https://ui.test' }
      const answer = await call(ports.http, '/api/config/status', { headers })
      return `${answer.status} ${answer.headers['access-control-allow-origin']}`
    },
    before: '200 undefined',
    after: '200 https://ui.test',
    record: () => ({ value: { allowOrigins: ['https://ui.test'] }, address: 'cors' }),
    isPolicy: true,
  },
]

/** Those whose tests are not of that form. */
const others = ['llm.apiKey', 'llm.provider']

it('no kind is left out', () => {
  expect([...cases.map(({ kind }) => kind), ...others].sort()).toEqual(kinds.map(({ name }) => name).sort())
})

const storages = [
  { storage: 'file', missing: undefined, url: async () => undefined },
  { storage: 'SQLite', missing: undefined, url: async () => sqliteUrl() },
  {
    storage: 'Postgres',
    missing: postgresMissing,
    url: async () => (await startPostgres()).createDatabase(),
  },
] as const

describe.each(storages)('in $storage', ({ missing, url }) => {
  describe.skipIf(missing !== undefined)('a record of kind', () => {
    let world: World

    beforeAll(async () => {
      const [http = 0, tcp = 0, free = 0] = await freePorts(3)
      const ports = { http, tcp, free }
      const config = stored(configWith(ports), await url(), { allowStdioTargets: true })
      const gateway = await startGateway(config, { lifetime: 'file' })
      world = { gateway, api: resourceApi(gateway), ports }
    })

    it.each(cases)('$kind changes traffic at once, until it is deleted', async (test) => {
      const { kind, look, before, after, record, isPolicy = false } = test
      const { api } = world
      expect(await look(world)).toBe(before)
      const { value, address } = await record(world)
      if (isPolicy)
        expect(await api.ask('PUT', `/${kind}/${address}`, { value })).toMatchObject({ status: 200 })
      else await api.create(kind, value)
      expect(await look(world)).toBe(after)
      expect(await api.ask('PUT', `/${kind}/${address}`, { value })).toMatchObject({ status: 200 })
      expect(await look(world)).toBe(after)
      await api.remove(kind, address)
      expect(await look(world)).toBe(before)
    })

    it('llm.apiKey lets its client in at once, until it is deleted', async () => {
      const { api, gateway } = world
      expect(await statusWith(gateway, 'tg-made')).toBe(401)
      const { id } = await api.create('llm.apiKey', { key: 'tg-made' })
      expect(await statusWith(gateway, 'tg-made')).toBe(200)
      await api.remove('llm.apiKey', id)
      expect(await statusWith(gateway, 'tg-made')).toBe(401)
    })

    it('llm.provider leads the models that share it elsewhere at once', async () => {
      const { api, gateway } = world
      const [one, other] = await Promise.all([mockOpenAi(), mockOpenAi()])
      const provider = ({ url: baseUrl }: { url: string }) => ({
        name: 'shared',
        provider: 'openai',
        params: { baseUrl: `${baseUrl}/v1`, apiKey: openAiKey, model: 'gpt-test' },
      })
      const asked = () => [one.seen.length, other.seen.length]
      await api.create('llm.provider', provider(one))
      await api.create('llm.model', { name: 'sharing', provider: { reference: 'shared' } })
      expect(await statusWith(gateway, fileKey, 'sharing')).toBe(200)
      expect(asked()).toEqual([1, 0])
      const moved = await api.ask('PUT', '/llm.provider/shared', { value: provider(other) })
      expect(moved.status).toBe(200)
      expect(await statusWith(gateway, fileKey, 'sharing')).toBe(200)
      expect(asked()).toEqual([1, 1])
      await api.remove('llm.model', 'sharing')
      await api.remove('llm.provider', 'shared')
      expect(await statusWith(gateway, fileKey, 'sharing')).toBe(404)
    })

    it('any kind leaves unrelated state in place: sessions, their programs, connections', async () => {
      const { api, ports } = world
      const session = await openSession(mcpUrl(world))
      const pid = await programOf(session)
      const { id } = await api.create('llm.apiKey', { key: 'tg-beside' })
      await api.create('llm.model', { name: 'beside', provider: 'echo' })
      await api.create('traffic.gateway', { name: 'extra', port: ports.free })
      expect(await programOf(session)).toBe(pid)
      await api.remove('traffic.gateway', 'extra')
      await api.remove('llm.model', 'beside')
      await api.remove('llm.apiKey', id)
      expect(await programOf(session)).toBe(pid)
      await session.end()
    })
  })
})

function configWith(ports: World['ports']): GatewayConfig {
  return {
    gateways: {
      default: { port: ports.http },
      raw: { port: ports.tcp, protocol: 'TCP' },
    },
    ui: { gateways: 'default', policies: { apiKey: { keys: [{ key: 'tg-of-the-ui' }] } } },
    llm: {
      models: [{ name: 'from-file', provider: 'echo' }],
      policies: { apiKey: { mode: 'strict', keys: [{ key: fileKey }] } },
    },
    // On the gateway: a port of its own would be one of the settings that `mcp.settings` replaces in a file.
    mcp: { port: undefined, targets: [programTarget('first')] },
  }
}

const mcpUrl = ({ ports }: World) => `http://127.0.0.1:${ports.http}/mcp`

/** Under which names the tool of every target is listed. */
async function whoami(world: World): Promise<string> {
  const session = await openSession(mcpUrl(world))
  const { tools } = await session.request('tools/list')
  await session.end()
  const names = (Array.isArray(tools) ? tools : []).map((tool) => isJsonObject(tool) && tool['name'])
  return names.filter((name) => String(name).endsWith('whoami')).join()
}

async function programOf(session: Awaited<ReturnType<typeof openSession>>): Promise<string> {
  return JSON.stringify(await session.request('tools/call', { name: 'pid', arguments: {} }))
}

/** Outcome of a plain GET, with the text of a successful response. */
async function statusAt(port: number, path: string): Promise<string> {
  try {
    const { status, text } = await call(port, path)
    return status === 200 ? `200 ${text}` : String(status)
  } catch {
    return 'refused'
  }
}
