import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { createLoginService } from './login-service.ts'
import { createTokenStore } from './token-store.ts'

const user = 'ada'
const genuine = 'https://auth.test'

/** A target, and authorization servers at all other origins. */
function world({ client }: { client?: { id: string; secret: string | undefined } } = {}, isSilent = false) {
  const state = {
    ...{ announced: genuine, now: 0, registered: 0, answer: undefined as JsonObject | undefined },
    /** Whether the server registers clients, and reads documents. */
    ...{ registers: true, reads: true },
  }
  const seen: string[] = []
  const store = createTokenStore(undefined, new Uint8Array(32))
  const json = (value: object, status = 200): Reply => ({
    ...{ status, headers: {}, body: Buffer.from(JSON.stringify(value)) },
  })
  async function send({ origin, path, body }: OutgoingRequest): Promise<Reply> {
    if (isSilent) return Promise.withResolvers<never>().promise
    switch (path) {
      case '/.well-known/oauth-protected-resource':
        return json({ resource: 'https://tools.test', authorization_servers: [state.announced] })
      case '/.well-known/oauth-authorization-server':
        return json({
          ...{
            issuer: origin,
            authorization_endpoint: `${origin}/authorize`,
            token_endpoint: `${origin}/token`,
          },
          ...(state.registers ? { registration_endpoint: `${origin}/register` } : {}),
          ...{
            code_challenge_methods_supported: ['S256'],
            client_id_metadata_document_supported: state.reads,
          },
          authorization_response_iss_parameter_supported: true,
        })
      case '/register':
        state.registered += 1
        return json({ client_id: `client-${state.registered}` }, 201)
      case '/token':
        seen.push(`${origin} ${String(body)}`)
        if (state.answer) return json(state.answer, 400)
        return json({ access_token: `token-${seen.length}`, refresh_token: 'secret', expires_in: 60 })
      default:
        return { status: 404, headers: {}, body: undefined }
    }
  }
  const service = createLoginService(
    {
      ...{ target: 'tools', url: 'https://tools.test/', issuer: undefined, client, scopes: undefined },
      ...{
        redirectUri: 'https://gateway.test/mcp/oauth/callback',
        documentUrl: 'https://gateway.test/mcp/oauth/client',
        store,
        send,
        connectTimeoutMs: isSilent ? 5 : 15_000,
      },
    },
    {
      clock: { now: () => state.now, monotonic: () => state.now } as never,
      log: { warn() {}, info() {} } as never,
    },
  )
  async function signIn(between = () => {}) {
    const started = await service.authorize('challenge')
    if (started.kind !== 'started') throw new Error(started.reason)
    between()
    const { origin } = started
    return service.redeem({
      user,
      code: 'code',
      verifier: 'verifier',
      origin,
      issuer: state.announced.replace(/\/$/, ''),
    })
  }
  return { state, seen, store, service, signIn }
}

const metadataMs = 11 * 60_000

describe('a refresh token', () => {
  it('is not sent to another authorization server that the target names later', async () => {
    const { state, seen, service, signIn } = world({ client: { id: 'c', secret: undefined } })
    expect(await signIn()).toEqual({ kind: 'done' })
    Object.assign(state, { announced: 'https://evil.test', now: metadataMs })
    expect(await service.token(user, undefined)).toEqual({ kind: 'none' })
    expect(seen.filter((request) => request.startsWith('https://evil.test'))).toEqual([])
    Object.assign(state, { announced: genuine, now: 2 * metadataMs })
    expect(await service.token(user, undefined)).toMatchObject({ kind: 'token', token: 'token-2' })
  })

  it.each(['invalid_client', 'unauthorized_client', 'invalid_request'])(
    'remains after the error %s',
    async (error) => {
      const { state, service, signIn } = world({ client: { id: 'c', secret: undefined } })
      await signIn()
      Object.assign(state, { answer: { error }, now: 61_000 })
      expect(await service.token(user, undefined)).toEqual({ kind: 'unavailable' })
      Object.assign(state, { answer: undefined, now: 70_000 })
      expect(await service.token(user, undefined)).toMatchObject({ kind: 'token' })
    },
  )

  it('is not used by another client, which the gateway registers after invalid_client', async () => {
    const { state, seen, service, signIn } = world()
    await signIn()
    Object.assign(state, { answer: { error: 'invalid_client' }, now: 61_000 })
    expect(await service.token(user, undefined)).toEqual({ kind: 'unavailable' })
    Object.assign(state, { answer: undefined, now: 70_000 })
    expect(await service.token(user, undefined)).toEqual({ kind: 'none' })
    expect([state.registered, seen.length]).toEqual([2, 2])
    expect(await signIn()).toEqual({ kind: 'done' })
  })
})

describe('a code', () => {
  it('is not sent to another authorization server than that of the login', async () => {
    const { state, seen, signIn } = world({ client: { id: 'c', secret: undefined } })
    const result = await signIn(() =>
      Object.assign(state, { announced: 'https://evil.test', now: metadataMs }),
    )
    expect([result.kind, seen]).toEqual(['failed', []])
  })

  it('is valid with the exact issuer of the metadata', async () => {
    const { state, signIn } = world()
    state.announced = `${genuine}/`
    expect(await signIn()).toEqual({ kind: 'done' })
  })
})

it('a login fails after a total time without metadata', async () => {
  const { service } = world({}, true)
  expect(await service.authorize('challenge')).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining('in time'),
  })
})

describe('a client without registration', () => {
  it('is the document of the gateway', async () => {
    const { state, seen, service, signIn } = world()
    state.registers = false
    expect(await signIn()).toEqual({ kind: 'done' })
    const id = encodeURIComponent('https://gateway.test/mcp/oauth/client')
    expect(seen[0]).toContain(`client_id=${id}`)
    expect(await service.token(user, undefined)).toMatchObject({ kind: 'token' })
    expect(state.registered).toBe(0)
  })

  it('is not possible if the server does not read documents', async () => {
    const { state, service } = world()
    Object.assign(state, { registers: false, reads: false })
    expect(await service.authorize('challenge')).toMatchObject({ kind: 'failed' })
  })
})
