import { argon2id, bcrypt } from 'hash-wasm'
import { beforeAll, describe, expect, it } from 'vitest'
import { throughAll } from '../../../test/fixtures/jwt.ts'
import { fixtureContext, fixtureExchange, textOf } from '../../../test/fixtures/pipeline.ts'
import { compileAuthentication } from '../../identity/authentication.ts'
import type { ThreadPool } from '../../lib/scheduling/thread-pool.ts'
import { check } from '../../schema/check.ts'
import { type BasicAuthConfig, basicAuthSchema, checkBasicAuth, compileBasicAuth } from './basic-auth.ts'
import { verifyPassword } from './password-task.ts'

const salt = new Uint8Array(16).fill(7)
let htpasswd = ''

beforeAll(async () => {
  const ada = await bcrypt({ password: 'correct horse', salt, costFactor: 4, outputType: 'encoded' })
  const long = await bcrypt({ password: 'x'.repeat(72), salt, costFactor: 4, outputType: 'encoded' })
  const cost = { iterations: 1, parallelism: 1, memorySize: 64, hashLength: 32 }
  const ben = await argon2id({ password: 'pässword: 1', salt, ...cost, outputType: 'encoded' })
  // Apache writes another prefix for the same algorithm.
  htpasswd = `ada:${ada.replace('$2a$', '$2y$')}\nben:${ben}\nlong:${long}\n`
})

/** A pool that verifies on this thread, when released. */
function slowPool() {
  const passwords: string[] = []
  const released = Promise.withResolvers<void>()
  const threads = {
    async run(_task: string, request: { password: string; hash: string }) {
      passwords.push(request.password)
      await released.promise
      return verifyPassword(request)
    },
    close() {},
  } as unknown as ThreadPool
  return { threads, passwords, release: released.resolve }
}

function setUp(config: Partial<BasicAuthConfig> = {}) {
  const pool = slowPool()
  pool.release()
  return { ...pool, ...compiled({ htpasswd, ...config }, pool.threads) }
}

function compiled(config: BasicAuthConfig, threads: ThreadPool) {
  const context = { ...fixtureContext(), threads }
  const policy = compileAuthentication('basic auth', [compileBasicAuth(config, context)])
  return {
    async send(authorization?: string, header = 'authorization') {
      const exchange = fixtureExchange({
        headers: authorization === undefined ? {} : { [header]: authorization },
      })
      const reply = await throughAll([policy], exchange)
      return { reply, exchange, status: reply.status }
    },
  }
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

describe('a request with a password', () => {
  it('is admitted by the configured header, which is removed', async () => {
    const header = { name: 'X-User', prefix: 'Basic ' }
    const { send } = setUp({ authorizationLocation: { header } })
    const { status, exchange } = await send(basic('ada', 'correct horse'), 'x-user')
    expect(status).toBe(200)
    expect(exchange.facts.basicAuth).toEqual({ username: 'ada' })
    expect(exchange.facts.request.headers).not.toHaveProperty('x-user')
    expect((await send(basic('ada', 'correct horse'))).status).toBe(401)
  })

  it.each([
    ['ada', 'correct horse'],
    ['ben', 'pässword: 1'],
    // bcrypt ignores bytes after the 72nd.
    ['long', 'x'.repeat(80)],
  ])('of %s passes with the name, and without the password', async (user, password) => {
    const { status, exchange } = await setUp().send(basic(user, password))
    expect(status).toBe(200)
    expect(exchange.facts.basicAuth).toEqual({ username: user })
    expect(exchange.facts.request.headers).toEqual({})
  })

  it.each([
    ['a wrong password', basic('ada', 'correct horsf')],
    ['the password of another user', basic('ben', 'correct horse')],
    ['an unknown user', basic('eve', 'correct horse')],
    ['no password', basic('ada', '')],
    ['no colon', `Basic ${Buffer.from('ada').toString('base64')}`],
    ['text that is not UTF-8', `Basic ${Buffer.from([0xff, 0x3a, 0xff]).toString('base64')}`],
    ['text that is not base64', 'Basic !!!'],
    ['a very long password', basic('ada', 'x'.repeat(2_000))],
  ])('is refused with %s', async (_title, authorization) => {
    const { reply, exchange } = await setUp({ realm: 'The "console"' }).send(authorization)
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toBe('Basic realm="The \\"console\\"", charset="UTF-8"')
    expect(textOf(reply)).toContain('invalid credentials')
    expect(exchange.facts.basicAuth).toBeUndefined()
  })
})

it.each([
  ['strict', 401],
  ['optional', 200],
] as const)('mode %s answers a request without a password with %d', async (mode, status) => {
  const { send } = setUp({ mode })
  expect((await send()).status).toBe(status)
  expect((await send('Bearer token')).status).toBe(status)
  expect((await send(basic('ada', 'wrong'))).status).toBe(401)
})

describe('verification', () => {
  it('happens once for requests at the same time and later ones', async () => {
    const pool = slowPool()
    const { send } = compiled({ htpasswd }, pool.threads)
    const replies = Array.from({ length: 5 }, () => send(basic('ada', 'correct horse')))
    pool.release()
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect((await send(basic('ada', 'correct horse'))).status).toBe(200)
    expect(pool.passwords).toHaveLength(1)
  })

  it('is repeated for wrong passwords, and happens for unknown users', async () => {
    const { send, passwords } = setUp()
    await send(basic('ada', 'wrong'))
    await send(basic('ada', 'wrong'))
    await send(basic('eve', 'wrong'))
    expect(passwords).toHaveLength(3)
  })

  it('is refused with 503 behind too many others', async () => {
    const pool = slowPool()
    const { send } = compiled({ htpasswd }, pool.threads)
    const guesses = Array.from({ length: 40 }, (_, index) => send(basic('ada', `guess ${index}`)))
    pool.release()
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(33)
    expect(statuses.filter((status) => status === 503)).toHaveLength(7)
    expect((await send(basic('ada', 'correct horse'))).status).toBe(200)
  })
})

it.each([
  [{ htpasswd: 'ada:plain' }, ['htpasswd']],
  [{ htpasswd: { file: '/etc/htpasswd' } }, []],
  [{ htpasswd: { file: '/etc/htpasswd' }, realm: 'Räume' }, ['realm']],
  [{}, ['htpasswd']],
  [{ htpasswd: { file: '/etc/htpasswd' }, mode: 'permissive' }, ['mode']],
])('checks %j', (config, mistakes) => {
  const checked = check(basicAuthSchema, config)
  const found: string[] = []
  if (checked.kind === 'mistakes') found.push(...checked.mistakes.map(({ path }) => path.join('.')))
  else checkBasicAuth(checked.value, (path) => found.push(path.join('.')))
  expect(found).toEqual(mistakes)
})
