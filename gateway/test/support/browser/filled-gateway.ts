import { DatabaseSync } from 'node:sqlite'
import type { Lifetime } from '../cleanup.ts'
import { freePort } from '../free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../gateway.ts'
import { programTarget } from '../mcp-fixtures.ts'
import { resourceApi, sqliteUrl, stored } from '../resource-api.ts'
import { fillSql } from '../synthetic-ledger.ts'
import { until } from '../wait.ts'

/** A gateway with content for each page of the console. */
export type FilledGateway = Gateway & {
  /** A key that calls every model. */
  readonly key: string
  /** Port of the gateway `default` with the routes. */
  readonly trafficPort: number
}

export type FilledOptions = {
  lifetime?: Lifetime
  /** Virtual keys in the database; with 0, the configuration is in the file. */
  keys?: number
  /** Rows of the ledger, over 30 days. */
  rows?: number
  /** Further sections, and replacements of those below. */
  config?: GatewayConfig
}

const key = 'tg-of-the-console-tests'

/** Address of the console on the admin address, without a slash at the end. */
export function consoleUrl({ adminPort }: { adminPort: number }): string {
  return `http://127.0.0.1:${adminPort}/ui`
}

/** Starts a gateway with models, keys, routes, an MCP server, budgets, guards, and a ledger with rows. */
export async function startFilledGateway(options: FilledOptions = {}): Promise<FilledGateway> {
  const { keys = 40, rows = 1_000, lifetime = 'test', config } = options
  const trafficPort = await freePort()
  const url = sqliteUrl()
  const file = { ...filledConfig(trafficPort), ...config }
  const base = keys === 0 ? { ...file, config: { ...file.config, database: { url } } } : stored(file, url)
  const gateway = await startGateway(base, { lifetime })
  if (keys > 0) await addKeys(gateway, keys)
  await sendTraffic(gateway)
  fillLedger(url, rows)
  return { ...gateway, key, trafficPort }
}

function filledConfig(port: number): GatewayConfig {
  const rates = { rates: { input: '2.50', output: '10' } }
  return {
    config: {
      logging: { database: { payloads: true } },
      modelCatalog: [{ inline: { providers: { echo: { models: { 'gpt-5': rates, echo: rates } } } } }],
    },
    gateways: { default: { port } },
    routes: [
      {
        name: 'health',
        matches: [{ path: { exact: '/health' } }],
        policies: { directResponse: { status: 200, body: 'ok' } },
      },
      {
        name: 'old-docs',
        matches: [{ path: { pathPrefix: '/docs' } }],
        policies: {
          requestRedirect: { scheme: 'https', authority: { host: 'docs.example.com' }, status: 301 },
        },
      },
      {
        name: 'shop',
        hostnames: ['shop.example.com'],
        matches: [{ path: { pathPrefix: '/' } }],
        policies: { timeout: { requestTimeout: '10s' } },
        backends: [{ host: 'localhost:9' }],
      },
    ],
    llm: {
      providers: [{ name: 'main', provider: 'echo' }],
      models: [
        { name: 'gpt-5', provider: { reference: 'main' } },
        { name: 'claude-sonnet', provider: 'echo' },
        { name: 'echo', provider: 'echo' },
        { name: 'local-*', provider: 'echo' },
      ],
      virtualModels: [
        {
          name: 'cheap',
          routing: {
            weighted: {
              targets: [
                { model: 'gpt-5', weight: 9 },
                { model: 'echo', weight: 1 },
              ],
            },
          },
        },
      ],
      policies: {
        apiKey: {
          mode: 'strict',
          keys: [
            { key, metadata: { name: 'console tests', user: 'ada', group: 'platform' } },
            { key: 'tg-of-a-trial', metadata: { name: 'trial', user: 'ben', group: 'trial' } },
          ],
        },
        guardrails: {
          request: [
            { name: 'personal data', regex: { rules: [{ builtin: 'email' }, { builtin: 'creditCard' }] } },
            { name: 'project names', regex: { action: 'reject', rules: [{ pattern: 'Bluebird' }] } },
          ],
        },
        localRateLimit: [{ requests: 600, unit: 'Minutes', key: 'apiKey.id' }],
        budgets: [
          { name: 'team', limit: { usd: 500 }, window: 'month', key: 'apiKey.group', warnAt: 0.8 },
          { name: 'trial', limit: { tokens: 200 }, window: '24h', key: 'apiKey.user' },
        ],
      },
    },
    mcp: { targets: [programTarget('files')] },
  }
}

const groups = ['platform', 'research', 'support', 'finance', 'trial']

async function addKeys(gateway: Gateway, count: number): Promise<void> {
  const resources = Array.from({ length: count }, (_, index) => ({
    value: {
      key: `tg-generated-${String(index).padStart(5, '0')}`,
      metadata: {
        name: `service ${index}`,
        user: `user-${index % 17}`,
        group: groups[index % groups.length],
      },
    },
  }))
  const reply = await resourceApi(gateway).ask('PUT', '/llm.apiKey', { resources })
  if (reply.status !== 200) throw new Error(`the keys were not stored: ${JSON.stringify(reply.body)}`)
}

/** Requests with different outcomes, whose rows have explanations and payloads. */
async function sendTraffic({ url }: Gateway): Promise<void> {
  const ask = async (model: string, content: string, credential = key) => {
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${credential}` },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    })
    await reply.arrayBuffer()
  }
  for (const model of ['gpt-5', 'claude-sonnet', 'echo', 'local-tiny', 'cheap'])
    for (let count = 0; count < 3; count++) await ask(model, `Question ${count} about the quarterly report`)
  await ask('gpt-5', 'Write to ada@example.com about the contract')
  await ask('gpt-5', 'Report on project Bluebird')
  await ask('unknown-model', 'Hello')
  await ask('echo', 'Hello', 'tg-unknown')
  for (let count = 0; count < 4; count++) await ask('echo', 'A question of a trial user', 'tg-of-a-trial')
}

/** Adds rows once the gateway has created the tables. */
function fillLedger(url: string, rows: number): void {
  if (rows === 0) return
  const database = new DatabaseSync(url.slice('sqlite://'.length), { timeout: 20_000 })
  try {
    const sums = { hourGroups: 6, dayGroups: 12, days: 30 }
    for (const statement of fillSql('sqlite', rows, { endTime: Date.now(), sums })) database.exec(statement)
  } finally {
    database.close()
  }
}

/** Resolves when the ledger has rows of the requests sent. */
export async function recorded({ adminPort }: { adminPort: number }, count = 1): Promise<void> {
  await until(`${count} rows in the ledger`, async () => {
    const reply = await fetch(`http://127.0.0.1:${adminPort}/api/logs/search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ limit: count }),
    })
    const { logs = [] }: { logs?: unknown[] } = JSON.parse(await reply.text())
    return logs.length >= count
  })
}
