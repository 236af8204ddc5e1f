import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bcrypt } from 'hash-wasm'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { keyedEcho, sqliteUrl, stored } from '../support/resource-api.ts'
import { createTokenIssuer } from '../support/token-issuer.ts'
import { until } from '../support/wait.ts'

/** Rights of users of the console: on the admin address and on `ui` gateways. */

const records = '/api/config/resources/llm.apiKey'

async function startConsole(policies: object, { url, config = {} }: { url?: string; config?: object } = {}) {
  const port = await freePort()
  const file: GatewayConfig = {
    ...keyedEcho,
    gateways: { default: { port } },
    ui: { gateways: 'default', policies },
  }
  const given = stored(file, url)
  const gateway = await startGateway({ ...given, config: { ...given.config, ...config } })
  async function ask(method: string, path: string, credential?: string, body?: object) {
    const authorization = credential === undefined ? {} : { authorization: `Bearer ${credential}` }
    const headers = { ...authorization, ...(body && { 'content-type': 'application/json' }) }
    return call(port, path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  }
  const whoami = async (credential: string) => JSON.parse((await ask('GET', '/api/whoami', credential)).text)
  return { gateway, ask, whoami }
}

describe('whoami', () => {
  it('reports full rights on the admin address', async () => {
    const { gateway } = await startConsole({ apiKey: { keys: [{ key: 'ui-key' }] } })
    const reply = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/whoami`)
    expect(await reply.json()).toMatchObject({
      login: 'none',
      mayChange: true,
      mayReveal: true,
      storage: { mode: 'file', readOnly: false },
      ledger: false,
      payloads: false,
    })
  })

  it('reports read-only storage with its reason', async () => {
    const { gateway, whoami } = await startConsole(
      { apiKey: { keys: [{ key: 'ui-key' }] } },
      { config: { storage: { mode: 'readOnly' } } },
    )
    const storage = { mode: 'file', readOnly: true, reason: 'config.storage.mode is readOnly' }
    const reply = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/whoami`)
    expect(await reply.json()).toMatchObject({ mayChange: false, storage })
    expect(await whoami('ui-key')).toMatchObject({ mayChange: false, storage })
  })

  it('reports the database', async () => {
    const { gateway } = await startConsole({ apiKey: { keys: [{ key: 'ui-key' }] } }, { url: sqliteUrl() })
    const reply = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/whoami`)
    expect(await reply.json()).toMatchObject({
      storage: { mode: 'hybrid', readOnly: false, database: 'sqlite' },
      ledger: true,
    })
  })

  it('reports the name of a virtual key, not the key', async () => {
    const keys = [{ key: 'ui-of-ada', metadata: { name: 'ada', group: 'ops', note: 'hidden' } }]
    const { ask } = await startConsole({ apiKey: { keys } })
    const { text } = await ask('GET', '/api/whoami', 'ui-of-ada')
    const { claims, ...user } = JSON.parse(text)
    expect(user).toMatchObject({ login: 'apiKey', name: 'ada', mayChange: true })
    expect(claims).toMatchObject({ name: 'ada', group: 'ops' })
    expect(text).not.toContain('ui-of-ada')
    expect(text).not.toContain('hidden')
  })
})

describe.each([
  { form: 'ui.change', rule: '!ui.change || "admin" in jwt.roles' },
  { form: 'the method', rule: 'request.method in ["GET", "HEAD"] || "admin" in jwt.roles' },
])('a rule over $form', ({ form, rule }) => {
  it('separates users who look from those who change', async () => {
    const issuer = await createTokenIssuer('https://id.test', 'tollgate')
    const { ask, whoami } = await startConsole({
      jwtAuth: { issuer: issuer.issuer, audiences: ['tollgate'], jwks: { inline: issuer.keys } },
      authorization: { rules: [{ require: 'has(jwt.roles)' }, rule] },
    })
    const admin = await issuer.token({ sub: 'ada', email: 'ada@example.com', roles: ['admin'] })
    const reader = await issuer.token({ sub: 'ben', roles: ['reader'] })
    const stranger = await issuer.token({ sub: 'eve' })
    const value = { resources: [{ value: { key: 'tg-made' } }] }

    expect(await whoami(admin)).toMatchObject({
      login: 'jwt',
      name: 'ada@example.com',
      email: 'ada@example.com',
      claims: { sub: 'ada', roles: ['admin'] },
      mayChange: true,
      mayReveal: true,
    })
    expect(await whoami(reader)).toMatchObject({ name: 'ben', mayChange: false })
    expect((await ask('GET', '/api/whoami', stranger)).status).toBe(403)
    expect((await ask('GET', '/ui/', stranger)).status).toBe(403)
    expect((await ask('GET', '/ui/')).status).toBe(401)

    expect((await ask('GET', records, reader)).status).toBe(200)
    expect((await ask('PUT', records, reader, value)).status).toBe(403)
    expect((await ask('PUT', records, admin, value)).status).toBe(200)
    const mayReveal = form === 'the method'
    expect(await whoami(reader)).toMatchObject({ mayReveal })
    expect((await ask('GET', `${records}?reveal=true`, reader)).status).toBe(mayReveal ? 200 : 403)
  })
})

describe('basicAuth', () => {
  const hash = (password: string) =>
    bcrypt({ password, salt: randomBytes(16), costFactor: 5, outputType: 'encoded' })
  const basic = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

  async function startWithUsers() {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-htpasswd-'))
    endAfter('test', () => rmSync(folder, { recursive: true }))
    const file = join(folder, 'htpasswd')
    writeFileSync(file, `ada:${await hash('first')}\nben:${await hash('other')}\n`)
    const port = await freePort()
    const policies = {
      basicAuth: { htpasswd: { file }, realm: 'Tollgate' },
      authorization: { rules: ['!ui.change || basicAuth.username == "ada"'] },
    }
    const gateway = await startGateway({
      ...keyedEcho,
      gateways: { default: { port } },
      ui: { gateways: 'default', policies },
    })
    const ask = (
      method: string,
      path: string,
      authorization?: string,
      headers: Record<string, string> = {},
    ) =>
      call(port, path, {
        method,
        headers: {
          ...headers,
          ...(authorization !== undefined && { authorization }),
          ...(method === 'PUT' && { 'content-type': 'application/json' }),
        },
        ...(method === 'PUT' && { body: JSON.stringify({ resources: [{ value: { key: 'tg-made' } }] }) }),
      })
    return { gateway, ask, file }
  }

  it('admits users of a file to the console, and applies changes of the file', async () => {
    const { gateway, ask, file } = await startWithUsers()
    const refused = await ask('GET', '/ui/')
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Basic realm="Tollgate", charset="UTF-8"' },
    })
    expect((await ask('GET', '/ui/', basic('ada', 'wrong'))).status).toBe(401)
    const page = await ask('GET', '/ui/llm/models', basic('ada', 'first'))
    expect(page.status).toBe(200)
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")

    const [ada, ben] = await Promise.all(
      [basic('ada', 'first'), basic('ben', 'other')].map(async (credential) =>
        JSON.parse((await ask('GET', '/api/whoami', credential)).text),
      ),
    )
    expect(ada).toMatchObject({ login: 'basic', name: 'ada', mayChange: true, mayReveal: true })
    expect(ben).toMatchObject({ login: 'basic', name: 'ben', mayChange: false, mayReveal: false })
    expect((await ask('PUT', records, basic('ben', 'other'))).status).toBe(403)
    expect((await ask('PUT', records, basic('ada', 'first'))).status).toBe(200)
    await until('the change is logged', () => gateway.stdout().includes('"principal":"ada"'))

    writeFileSync(file, `ada:${await hash('second')}\n`)
    await until(
      'the new password',
      async () => (await ask('GET', '/ui/', basic('ada', 'second'))).status === 200,
    )
    expect((await ask('GET', '/ui/', basic('ada', 'first'))).status).toBe(401)
    expect((await ask('GET', '/ui/', basic('ben', 'other'))).status).toBe(401)
    expect(gateway.stdout()).not.toContain('$2a$')
  })

  it('refuses changes that a page of another site sends with the password of the browser', async () => {
    const { ask } = await startWithUsers()
    const admin = basic('ada', 'first')
    const page = (origin: string, site: string) => ({ origin, 'sec-fetch-site': site })
    const forged = await ask('PUT', records, admin, page('https://evil.example.com', 'cross-site'))
    expect(forged).toMatchObject({ status: 403 })
    expect(forged.text).toContain('cross-origin request detected')
    expect((await ask('PUT', records, admin, { origin: 'https://evil.example.com' })).status).toBe(403)
    expect((await ask('PUT', records, admin, { 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect((await ask('GET', '/ui/', admin, { 'sec-fetch-site': 'cross-site' })).status).toBe(200)
  })
})
