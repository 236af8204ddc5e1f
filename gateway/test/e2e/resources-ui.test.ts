import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { type GatewayConfig, runTollgate, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { keyedEcho, resourceApi, sqliteUrl, statusWith, stored } from '../support/resource-api.ts'
import { createTokenIssuer } from '../support/token-issuer.ts'
import { until } from '../support/wait.ts'

/** The config resource API on a gateway, for remote users. */

const kind = '/api/config/resources/llm.apiKey'

async function startUi(policies: object, url?: string) {
  const port = await freePort()
  const config: GatewayConfig = {
    ...keyedEcho,
    gateways: { default: { port } },
    ui: { gateways: 'default', policies },
  }
  const gateway = await startGateway(stored(config, url))
  const ask = (method: string, path: string, credential?: string, body?: object, headers = {}) =>
    call(port, path, {
      method,
      host: 'admin.example.com',
      headers: {
        ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
  return { gateway, ask }
}

describe.each([
  { storage: 'a file', url: undefined },
  { storage: 'SQLite', url: sqliteUrl },
])('the API on a gateway, over $storage', ({ url }) => {
  it('requires a separate key, and logs the requester', async () => {
    const keys = [{ key: 'ui-of-ada', metadata: { name: 'ada' } }]
    const { gateway, ask } = await startUi({ apiKey: { keys } }, url?.())
    const value = { resources: [{ value: { key: 'tg-made' } }] }
    for (const credential of [undefined, 'tg-made', 'ui-of-bob']) {
      for (const path of [kind, '/api/config/effective', '/api/config/status', `${kind}/x`]) {
        expect((await ask('GET', path, credential)).status).toBe(401)
      }
      expect((await ask('PUT', kind, credential, value)).status).toBe(401)
    }
    expect(await statusWith(gateway, 'tg-made')).toBe(401)

    const made = await ask('PUT', kind, 'ui-of-ada', value)
    expect(made.status).toBe(200)
    expect(await statusWith(gateway, 'tg-made')).toBe(200)
    // The keys of the API are no keys of the models, nor the other way round.
    expect(await statusWith(gateway, 'ui-of-ada')).toBe(401)
    expect((await ask('GET', kind, 'tg-made')).status).toBe(401)
    const { id } = JSON.parse(made.text).resources[0]
    const audit = await until('the change is in the log', () =>
      gateway
        .stdout()
        .split('\n')
        .find((line) => line.includes('"audit"') && line.includes(id)),
    )
    expect(JSON.parse(audit)).toMatchObject({ audit: { op: 'put', id, principal: 'ada' } })
    // The admin address keeps its copy.
    await resourceApi(gateway).remove('llm.apiKey', id)
    expect(await statusWith(gateway, 'tg-made')).toBe(401)
    expect(gateway.stdout()).not.toContain('ui-of-ada')
  })
})

describe('the API on a gateway', () => {
  it('is for those with a token, as far as the rules let them', async () => {
    const issuer = await createTokenIssuer('https://id.test', 'tollgate')
    const { gateway, ask } = await startUi({
      jwtAuth: { issuer: issuer.issuer, audiences: ['tollgate'], jwks: { inline: issuer.keys } },
      authorization: {
        rules: ['request.method == "GET" || (has(jwt.role) && jwt.role == "admin")'],
      },
    })
    const [admin, reader, expired] = [
      await issuer.token({ sub: 'ada', role: 'admin' }),
      await issuer.token({ sub: 'ben' }),
      await issuer.token({ sub: 'ada', role: 'admin', exp: 1 }),
    ]
    const value = { resources: [{ value: { key: 'tg-made' } }] }
    expect((await ask('PUT', kind, expired, value)).status).toBe(401)
    expect((await ask('PUT', kind, reader, value)).status).toBe(403)
    expect((await ask('GET', kind, reader)).status).toBe(200)
    expect((await ask('PUT', kind, admin, value)).status).toBe(200)
    expect(await statusWith(gateway, 'tg-made')).toBe(200)
    expect(gateway.stdout()).not.toContain(admin)
  })

  it('answers pages of other sites only where cors allows them', async () => {
    const { ask } = await startUi({
      apiKey: { keys: [{ key: 'ui-key' }] },
      cors: {
        allowOrigins: ['https://ui.example.com'],
        allowMethods: ['PUT'],
        allowHeaders: ['authorization'],
      },
    })
    const preflight = (origin: string) =>
      ask('OPTIONS', kind, undefined, undefined, { origin, 'access-control-request-method': 'PUT' })
    const allowed = await preflight('https://ui.example.com')
    expect(allowed.headers['access-control-allow-origin']).toBe('https://ui.example.com')
    const refused = await preflight('https://evil.example.com')
    expect(refused.headers).not.toHaveProperty('access-control-allow-origin')
    const read = await ask('GET', kind, 'ui-key', undefined, { origin: 'https://ui.example.com' })
    expect(read).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': 'https://ui.example.com' },
    })
  })

  it('has the limits and the refusals of the admin address', async () => {
    const { ask } = await startUi({ apiKey: { keys: [{ key: 'ui-key' }] } })
    expect((await ask('GET', '/api/config/resources/apiKey', 'ui-key')).status).toBe(400)
    expect((await ask('POST', kind, 'ui-key', {})).status).toBe(405)
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await ask('PUT', kind, 'ui-key', {}, form)).status).toBe(415)
    const large = { resources: [], padding: 'x'.repeat(2 * 1024 * 1024) }
    expect((await ask('PUT', kind, 'ui-key', large)).status).toBe(413)
    expect((await ask('GET', '/api/config/nothing', 'ui-key')).status).toBe(404)
  })

  it('cannot take away the last thing that keeps strangers out', async () => {
    const url = sqliteUrl()
    const { gateway, ask } = await startUi({ apiKey: { keys: [{ key: 'ui-key' }] } }, url)
    const api = resourceApi(gateway)
    const policy = await api.ask('PUT', '/ui.policy/apiKey', { value: { mode: 'optional' } })
    expect(policy.status).toBeGreaterThanOrEqual(400)
    expect((await ask('GET', kind)).status).toBe(401)
  })

  it.each([
    ['no policies', {}],
    ['a policy that asks nobody', { policies: { cors: { allowOrigins: ['*'] } } }],
    ['keys that are optional', { policies: { apiKey: { mode: 'optional', keys: [{ key: 'k' }] } } }],
    ['keys that nobody checks', { policies: { apiKey: { mode: 'permissive', keys: [{ key: 'k' }] } } }],
  ])('is a mistake of the configuration with %s', async (_title, ui) => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-ui-'))
    endAfter('test', () => rmSync(folder, { recursive: true }))
    const file = join(folder, 'config.yaml')
    const gateways = { default: { port: 8080 } }
    writeFileSync(file, JSON.stringify({ ...keyedEcho, gateways, ui: { gateways: 'default', ...ui } }))
    const run = await runTollgate(['--validate-only', '-f', file])
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('without authentication every client can read and change the configuration')
  })
})
