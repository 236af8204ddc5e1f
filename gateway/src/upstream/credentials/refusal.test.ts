import { expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import { callerOf } from './caller.ts'
import type { BackendAuthConfig } from './config.ts'
import { type Authorize, compileAuthorize, sendAuthorized } from './credentials.ts'

const origin = 'https://bedrock-runtime.eu-west-1.amazonaws.com'

/** Each request for a credential has another one, which contains its number. */
function fixture() {
  let issued = 0
  const base = fixtureContext()
  const temporary = () =>
    `<AccessKeyId>T${issued}</AccessKeyId><SecretAccessKey>x</SecretAccessKey><SessionToken>s</SessionToken>`
  const context = {
    ...base,
    environment: {
      AWS_CONFIG_FILE: '/config',
      AWS_REGION: 'eu-west-1',
      GCE_METADATA_HOST: 'metadata.test',
      XDG_CONFIG_HOME: '/x',
    },
    readFile(path: string): string {
      throw new Error(`${path} does not exist`)
    },
    readFileNow(path: string) {
      if (path !== '/config' && path !== '/x/gh/hosts.yml') throw new Error(`${path} does not exist`)
      issued += 1
      if (path !== '/config') return `github.com:\n  oauth_token: T${issued}\n`
      return `[default]\naws_access_key_id = T${issued}\naws_secret_access_key = x\n`
    },
    send: async ({ origin: to }: OutgoingRequest): Promise<Reply> => {
      issued += 1
      const json = { access_token: `T${issued}`, expires_in: 3600, token_type: 'Bearer' }
      const text = to.startsWith('https://sts.') ? temporary() : JSON.stringify(json)
      return { status: 200, headers: {}, body: Buffer.from(text) }
    },
  }
  return { context, clock: base.clock }
}

async function credentialOf(authorize: Authorize | undefined, status = 200): Promise<string | undefined> {
  const request = { origin, path: '/', method: 'GET', headers: {} as Record<string, string> }
  const sent = { request, caller: callerOf(fixtureExchange({ headers: { 'x-user': 'ada' } })) }
  const reply = await sendAuthorized(authorize, sent, async () => ({ status, headers: {}, body: undefined }))
  expect(reply.status).toBe(status)
  return /T\d+/.exec(request.headers['authorization'] ?? '')?.[0]
}

const client = { tenant_id: 't', client_id: 'c', client_secret: 'x' }
const assumeRole = {
  roleArn: 'arn:aws:iam::123456789012:role/r',
  sessionName: { expression: 'request.headers["x-user"]' },
}

it.each<[string, BackendAuthConfig]>([
  ['Microsoft Entra', { azure: { explicitConfig: { clientSecret: client } } }],
  ['Google', { gcp: {} }],
  ['GitHub Copilot', { copilot: {} }],
  ['a profile of AWS', { aws: {} }],
  ['a role of AWS', { aws: { accessKeyId: 'A', secretAccessKey: 'x', assumeRole } }],
])('the next request after a refusal has another credential of %s, once in 30 seconds', async (_, config) => {
  const { context, clock } = fixture()
  const authorize = compileAuthorize(config, context, { destination: config })
  const first = await credentialOf(authorize)
  for (const status of [500, 429, 404]) expect(await credentialOf(authorize, status)).toBe(first)
  expect(await credentialOf(authorize, 401)).toBe(first)
  const second = await credentialOf(authorize, 403)
  expect([first, second]).toEqual([expect.any(String), expect.not.stringContaining(first ?? '')])
  expect(await credentialOf(authorize, 403)).toBe(second)
  clock.advance(30_000)
  expect(await credentialOf(authorize, 403)).toBe(second)
  expect(await credentialOf(authorize)).not.toBe(second)
})

it('static keys have no other credential', () => {
  const { context } = fixture()
  expect(compileAuthorize({ key: 'k'.repeat(9) }, context)?.refused).toBeUndefined()
})
