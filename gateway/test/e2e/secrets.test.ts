import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { faultyUpstream } from '../support/faulty-upstream.ts'
import { contentOf } from '../support/folder-content.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { aliceKey, aliceRecord, chat, llmConfig, models, openAiModel } from '../support/llm-config.ts'
import { createLoginBrowser } from '../support/login-browser.ts'
import { loginClient, startLoginProvider } from '../support/login-provider.mjs'
import { programTarget } from '../support/mcp-fixtures.ts'
import { mcpHeaders } from '../support/mcp-raw.ts'
import { anthropicErrors, anthropicKey, mockAnthropic } from '../support/mock-anthropic.ts'
import { mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'
import { runProgram } from '../support/run-program.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

const promptText = 'prompt-canary-why-is-the-sky-blue'
const answerText = 'answer-canary-because-of-scattering'
const unknownKey = 'tg-unknown-canary-6611'
const queryText = 'query-canary-2201'
const canaries = { aliceKey, openAiKey, anthropicKey, promptText, answerText, unknownKey, queryText }

function leaks(text: string): string[] {
  return Object.entries(canaries)
    .filter(([, canary]) => text.includes(canary))
    .map(([name]) => name)
}

describe('secrets and content', () => {
  it('never appear in logs, metrics, admin answers or refusals', async () => {
    const openai = await mockOpenAi()
    const anthropic = await mockAnthropic()
    openai.behaviour.content = answerText
    anthropic.behaviour.content = answerText
    const dead = await faultyUpstream('refuses')
    const cut = await faultyUpstream('closes mid stream')
    const garbage = await faultyUpstream('garbage JSON')
    const config = llmConfig(
      {},
      {
        models: [
          ...models({ openai, anthropic }),
          openAiModel('dead', dead.url),
          openAiModel('cut', cut.url),
          openAiModel('garbage', garbage.url),
        ],
        policies: { authorization: { rules: [{ deny: 'llmRequest.user == "refused"' }] } },
      },
    )
    const gateway = await startGateway(config)
    const messages = [{ role: 'user', content: promptText }]
    const refusals: string[] = []

    for (const model of ['gpt-test', 'claude-test', 'echo']) {
      for (const stream of [false, true]) {
        await readStream(
          await chat(
            gateway,
            { model, messages, stream, user: 'a' },
            { path: `/v1/chat/completions?key=${queryText}` },
          ),
        )
        await readStream(
          await chat(gateway, { model, messages, stream, max_tokens: 5 }, { path: '/v1/messages' }),
        )
      }
    }
    for (const body of [
      { model: 'dead' },
      { model: 'garbage' },
      { model: 'cut', stream: true },
      { model: 'nobody' },
    ]) {
      refusals.push(await (await chat(gateway, { ...body, messages })).text())
    }
    openai.next(openAiErrors.failed)
    anthropic.next(anthropicErrors.unauthorized)
    for (const model of ['gpt-test', 'claude-test']) {
      refusals.push(await (await chat(gateway, { model, messages })).text())
    }
    refusals.push(
      await (
        await chat(gateway, { messages }, { headers: { authorization: `Bearer ${unknownKey}` } })
      ).text(),
    )
    refusals.push(await (await chat(gateway, { messages, user: 'refused' })).text())
    refusals.push(await (await chat(gateway, { messages, model: 5 })).text())
    const broken = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${aliceKey}` },
      body: `{"model": "echo", "messages": "${promptText}`,
    })
    refusals.push(await broken.text())

    expect(refusals.map(leaks)).toEqual(refusals.map(() => []))
    expect(leaks(await gateway.metrics())).toEqual([])
    for (const path of ['/api/config/status', '/api/config/schema', '/']) {
      const response = await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`)
      expect([path, leaks(await response.text())]).toEqual([path, []])
    }

    gateway.write(JSON.stringify({ ...config, llm: { ...config.llm, models: { apiKey: openAiKey } } }))
    const status = await until('the bad file is noticed', async () => {
      const now = await gateway.status()
      return now.lastError === undefined ? undefined : now
    })
    expect(leaks(status.lastError ?? '')).toEqual([])

    await gateway.stop()
    expect(gateway.requests().length).toBeGreaterThan(20)
    expect(leaks(gateway.stdout())).toEqual([])
    expect(leaks(gateway.stderr())).toEqual([])
  })
})

/** Credentials in places that no entry of the ledger may copy. */
const headerText = 'header-canary-9920'
const cookieText = 'cookie-canary-3317'
const wrongToken = 'token-canary-7745'
const card = '4111 1111 1111 1111'
const credentials = {
  aliceKey,
  openAiKey,
  anthropicKey,
  unknownKey,
  queryText,
  headerText,
  cookieText,
  wrongToken,
  card,
}

/** Sends requests with credentials everywhere; returns the ids of their entries. */
async function sendCredentials(gateway: Gateway): Promise<string[]> {
  const messages = [{ role: 'user', content: `${promptText} ${card}` }]
  const ids: string[] = []
  const headers = {
    'x-secret': headerText,
    cookie: `session=${cookieText}`,
    'proxy-authorization': `Basic ${headerText}`,
    baggage: headerText,
  }
  const send = async (body: object, more: Record<string, string> = {}) => {
    const path = `/v1/chat/completions?api-key=${queryText}`
    const response = await chat(
      gateway,
      { messages, user: 'a', ...body },
      { headers: { ...headers, ...more }, path },
    )
    await readStream(response)
    ids.push(response.headers.get('x-request-id') ?? '')
  }
  for (const model of ['gpt-test', 'claude-test', 'echo', 'dead', 'nobody']) {
    for (const stream of [false, true]) await send({ model, stream })
  }
  await send({ model: 'gpt-test' }, { authorization: `Bearer ${unknownKey}` })
  await send({ model: 'gpt-test', user: 'refused' })
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'add', arguments: {} } }
  const mcp = { ...mcpHeaders, authorization: `Bearer ${wrongToken}`, cookie: cookieText }
  const refused = await fetch(gateway.mcpUrl, { method: 'POST', headers: mcp, body: JSON.stringify(call) })
  ids.push(refused.headers.get('x-request-id') ?? '')
  expect(refused.status).toBe(401)
  return ids
}

async function startWithLedger(database: string, payloads: boolean) {
  const [openai, anthropic, dead] = await Promise.all([
    mockOpenAi(),
    mockAnthropic(),
    faultyUpstream('refuses'),
  ])
  openai.behaviour.content = answerText
  anthropic.behaviour.content = answerText
  const { llm = {} } = llmConfig(
    {},
    {
      models: [...models({ openai, anthropic }), openAiModel('dead', dead.url)],
      policies: { authorization: { rules: [{ deny: 'llmRequest.user == "refused"' }] } },
      guardrails: { request: [{ regex: { rules: [{ builtin: 'creditCard' }] } }] },
    },
  )
  const gateway = await startGateway({
    llm,
    mcp: { targets: [programTarget('files')], policies: { apiKey: { mode: 'strict', keys: [aliceRecord] } } },
    config: {
      database: { url: database },
      logging: { explain: 'all', database: { payloads } },
    },
  })
  return { gateway, openai }
}

describe('the ledger', () => {
  const leaked = (text: string) =>
    Object.entries(credentials)
      .filter(([, canary]) => text.includes(canary) || text.includes(Buffer.from(canary).toString('base64')))
      .map(([name]) => name)

  it.each([
    ['with', true],
    ['without', false],
  ])(
    'has no credentials in rows, spool and API %s payloads, which alone have content',
    async (_, payloads) => {
      const url = sqliteUrl()
      const folder = dirname(url.slice('sqlite://'.length))
      const { gateway, openai } = await startWithLedger(url, payloads)
      // Entries are in the spool while another process has the lock of the database.
      const lock = new DatabaseSync(url.slice('sqlite://'.length), { timeout: 10_000 })
      lock.exec('begin immediate')
      openai.next(openAiErrors.unauthorized)
      const ids = await sendCredentials(gateway)
      const spooled = await until('the entries are in the spool', () => {
        const text = contentOf(folder)
        return ids.every((id) => text.includes(id)) && text
      })
      lock.exec('rollback')
      lock.close()
      const answers: string[] = []
      const ask = async (path: string, init: RequestInit = {}) => {
        const response = await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`, init)
        answers.push(await response.text())
      }
      await until('the entries are in the database', () => {
        const database = new DatabaseSync(url.slice('sqlite://'.length), { readOnly: true })
        const row = database.prepare('select count(*) as count from tollgate_requests').get()
        database.close()
        return row?.['count'] === ids.length
      })
      const body = JSON.stringify({ limit: 100, includeAttributes: true })
      await ask('/api/logs/search', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      for (const id of ids) await ask(`/api/requests/${id}`)
      await ask('/api/usage.csv')
      await gateway.stop()
      const texts = [spooled, contentOf(folder), ...answers, gateway.stdout(), gateway.stderr()]
      expect(texts.map(leaked)).toEqual(texts.map(() => []))
      expect(contentOf(folder).includes(promptText)).toBe(payloads)
      expect(contentOf(folder).includes(answerText)).toBe(payloads)
    },
  )
})

describe('logins with a browser', () => {
  it('leave no code, token, cookie or secret in logs, metrics, pages and admin answers', async () => {
    const [port = 0] = await freePorts(1)
    const url = `http://127.0.0.1:${port}`
    const provider = await startLoginProvider({
      redirectUris: [`${url}/oauth/callback`],
      users: { ada: { email: 'ada@example.com' } },
      user: () => 'ada',
    })
    endAfter('test', provider.close)
    const cookieSecret = 'cookie-secret-canary-2290-0123456789abcdef'
    const oidc = {
      ...{ issuer: provider.issuer, clientId: loginClient.id, clientSecret: loginClient.secret },
      session: { secrets: [cookieSecret] },
    }
    const gateway = await startGateway({
      gateways: { default: { port, oidc } },
      routes: [{ policies: { directResponse: { status: 200, body: 'app' } } }],
    })
    const browser = createLoginBrowser()
    const texts: string[] = []
    const page = await browser.open(`${url}/app`)
    expect(page).toMatchObject({ status: 200, text: 'app' })
    const callback = page.visited.find((visited) => visited.includes('code=')) ?? ''
    texts.push(await (await browser.navigate(callback)).text())
    texts.push(await (await browser.navigate(callback.replace(/state=[^&]*/, 'state=x'))).text())
    const cookies = [...browser.cookies.values()].filter((value) => value.length > 20)
    const logout = await browser.navigate(`${url}/oauth/callback/logout`)
    const hint = new URL(logout.headers.get('location') ?? '').searchParams.get('id_token_hint') ?? ''
    await provider.close()
    texts.push(await (await browser.navigate(`${url}/app`)).text())
    for (const path of ['/api/config/effective', '/api/config/status', '/api/state'])
      texts.push(await (await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`)).text())
    texts.push(await gateway.metrics())
    await gateway.stop()
    texts.push(gateway.stdout(), gateway.stderr())
    const parameters = new URL(callback).searchParams
    const secrets = [
      ...[
        cookieSecret,
        loginClient.secret,
        ...cookies,
        ...browser.received.map(valueOfCookie),
        ...hint.split('.'),
      ],
      ...[parameters.get('code') ?? '', parameters.get('state') ?? ''],
    ].filter((secret) => secret.length > 8)
    expect(secrets.length).toBeGreaterThan(8)
    expect(texts.map((text) => secrets.filter((secret) => text.includes(secret)))).toEqual(
      texts.map(() => []),
    )
  })
})

/** Value in a line of `set-cookie`. */
function valueOfCookie(line: string): string {
  return (line.split(';', 1)[0] ?? '').replace(/^[^=]*=(?:\d\.)?/, '')
}

describe('private keys', () => {
  const authority = createAuthority()
  const { cert, key } = authority.issue('a.test')
  // The last line of a key may be part of the public key, which the certificate contains.
  const lines = key
    .split('\n')
    .map((line) => line.slice(0, 24))
    .filter((line) => line !== '' && !line.startsWith('-----') && !cert.includes(line))
  const leaked = (text: string) => lines.filter((line) => text.includes(line))

  it('in the configuration are used, masked and never printed, also in place of a file name', async () => {
    const [port, other] = await freePorts(2)
    const inline = (text: string) => ({ inline: text })
    const database = sqliteUrl()
    const pair = { cert: inline(cert), key: inline(key) }
    const own = {
      gateways: { default: { port, tls: { ...pair, root: inline(authority.cert) } } },
      routes: [{ backends: [{ host: '127.0.0.1:1', policies: { backendTLS: pair } }] }],
    }
    const gateway = await startGateway(stored(own, database))
    const api = resourceApi(gateway)
    const client = { ca: authority.cert, name: 'a.test', cert, key }
    expect((await call(port ?? 0, '/', { host: 'a.test', tls: client })).status).toBe(503)

    const said: string[] = []
    const put = async (tls: object) => {
      const resources = [{ value: { name: 'more', port: other, tls } }]
      const { status, body } = await api.ask('PUT', '/traffic.gateway', { resources })
      said.push(JSON.stringify(body))
      return status
    }
    expect(await put(pair)).toBe(200)
    const wrong: Record<string, unknown>[] = [
      { cert, key },
      { cert: inline(cert), key: { inlined: key } },
      { cert: inline(cert), key: [key] },
      { cert: inline(cert), key: inline(`${key.slice(0, 200)}\n${key.slice(-200)}`) },
      { cert: inline(key), key: inline(key) },
      { cert: inline(cert), key: inline(authority.issue('b.test').key + key) },
      { [key]: 1 },
      { cert: inline(cert), key: inline(key), minTLSVersion: key },
    ]
    for (const tls of wrong) expect(await put(tls)).toBeGreaterThanOrEqual(400)
    for (const path of ['', '/traffic.gateway']) said.push(JSON.stringify((await api.ask('GET', path)).body))
    said.push(JSON.stringify(await api.document('effective')))
    expect(said.join()).toContain('***')

    for (const tls of wrong) {
      for (const text of [
        { ...own, gateways: { default: { port, tls } } },
        { ...own, routes: [tls] },
      ]) {
        const before = (await gateway.status()).lastError
        gateway.write(stored(text, database))
        said.push(
          await until('the bad file is noticed', async () => {
            const { lastError } = await gateway.status()
            return lastError !== before && lastError
          }),
        )
      }
    }
    const { code, stdout, stderr } = await runProgram('gateway/src/main.ts', [
      '--validate-only',
      '-f',
      gateway.file,
    ])
    expect(code).toBe(1)
    await gateway.stop()
    said.push(stdout, stderr, gateway.stdout(), gateway.stderr())
    expect(lines.length).toBeGreaterThan(0)
    expect(said.map(leaked)).toEqual(said.map(() => []))
  })
})
