import { bench, group, run } from 'mitata'
import { compileAuthentication } from '../../src/identity/authentication.ts'
import { createCancellation } from '../../src/lib/cancellation.ts'
import type { IncomingRequest } from '../../src/net/http/incoming-request.ts'
import { createPipeline } from '../../src/pipeline/pipeline.ts'
import type { Explain } from '../../src/pipeline/recording/recording.ts'
import { explainRoute } from '../../src/pipeline/routing/explain-route.ts'
import { createRouteTableBuilder } from '../../src/pipeline/routing/route-table.ts'
import type { HttpListener, Route } from '../../src/pipeline/snapshot.ts'
import { compileApiKey } from '../../src/policies/api-key/api-key.ts'
import { compileAuthorization } from '../../src/policies/authorization.ts'
import { compileLocalRateLimit } from '../../src/policies/rate-limit/local.ts'
import { fixtureConnection, fixtureContext } from '../../test/fixtures/pipeline.ts'

// CPU per request of the decisions for the ledger and of explanations: a route with a key, three rules and
// two limits. `no ledger` is the request alone, to be subtracted.

// A clock that runs faster, because explanations are limited per second.
const clock = { now: () => Date.now(), monotonic: () => performance.now() * 1_000, advance() {} }
const context = { ...fixtureContext(), clock }
const meter = { done() {} }
const rules = [
  { deny: 'apiKey.group == "trial"' },
  { require: 'request.headers["x-team"] == "search"' },
  { allow: 'apiKey.group == "platform" && request.path.startsWith("/v1/")' },
]
const variables = new Set(['request', 'apiKey', 'jwt', 'source'])
const huge = 1_000_000_000
const limits = [
  { requests: huge, unit: 'Minutes' as const },
  { requests: huge, unit: 'Hours' as const },
]
const scope = 'bench'

const route: Route = {
  name: 'llm',
  traffic: 'llm',
  listener: 'default',
  policies: [
    compileAuthentication('api key', [
      compileApiKey({ keys: [{ key: 'key-a', metadata: { id: 'a', group: 'platform' } }] }, context, scope),
    ]),
    compileAuthorization({ rules }, context, { variables, scope }).beforeBody,
    compileLocalRateLimit(limits, context, { scope }).beforeBody,
  ].filter((policy) => policy !== undefined),
  backend(exchange) {
    exchange.llm = {
      operation: { operation: 'chat', api: 'chat_completions' },
      estimate: undefined,
      message: undefined,
    }
    return { status: 200, headers: {}, body: undefined }
  },
  meter,
  errorFormat: () => 'openai',
}

const table = createRouteTableBuilder<Route>()
for (const path of ['/v1', '/v1/chat', '/v1/images', '/admin'])
  table.add({
    hostnames: [],
    matches: [{ path: { kind: 'prefix', value: path }, method: undefined, headers: [], query: [] }],
    target: route,
  })
const find = table.build()

const listener: HttpListener = {
  key: 'k',
  host: 'h',
  port: 1,
  kind: 'http',
  tls: undefined,
  match: (request) => find(request),
  explain: (request) => ({ listener: 'default', candidates: explainRoute(table.table, request) }),
}

function pipeline(explain: Explain | undefined) {
  const silent = () => {}
  const log = {
    debug: silent,
    info: silent,
    warn: silent,
    error: silent,
    audit: silent,
    flush: async () => {},
    writeLine: silent,
  }
  return createPipeline({
    listener: () => listener,
    log,
    clock,
    unrouted: meter,
    ledger: explain === undefined ? undefined : { record: silent },
    explain,
  })
}

function requestOf(team: string): IncomingRequest {
  return {
    method: 'POST',
    target: '/v1/chat/completions',
    version: '1.1',
    headers: { host: 'gateway.test', authorization: 'Bearer key-a', 'x-team': team },
    connection: fixtureConnection(),
    upgrade: undefined,
    informational: undefined,
    body: undefined,
    cancellation: createCancellation(),
    startedAt: performance.now(),
  }
}

const modes: Record<string, Explain | undefined> = {
  'no ledger': undefined,
  'explain: off': 'off',
  'explain: errors': 'errors',
  'explain: all': 'all',
}

for (const [name, team] of [
  ['served', 'search'],
  ['refused by a rule', 'other'],
] as const) {
  group(name, () => {
    for (const [mode, explain] of Object.entries(modes)) {
      const handle = pipeline(explain)
      bench(mode, async () => {
        const { reply, end } = handle(requestOf(team))
        const { status } = await reply
        end({ complete: true, status, bytesSent: 0, firstByteAt: performance.now() })
      })
    }
  })
}

await run()
