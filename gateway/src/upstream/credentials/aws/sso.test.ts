import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import type { GatewayError } from '../../../lib/gateway-error.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { noCaller } from '../caller.ts'
import { compileAuthorize } from '../credentials.ts'

const tokenFile = (key: string) =>
  `/srv/g/.aws/sso/cache/${createHash('sha1').update(key).digest('hex')}.json`

const startUrl = 'https://corp.awsapps.com/start'
const assignment = 'sso_account_id = 123456789012\nsso_role_name = Read Only\n'
const session = `[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = ${startUrl}\n`
const ofSession = `[profile app]\nsso_session = corp\n${assignment}${session}`
const ofStartUrl = `[profile app]\nsso_start_url = ${startUrl}\nsso_region = cn-north-1\n${assignment}`

const token = (end = '1970-01-01T08:00:00Z') => JSON.stringify({ accessToken: 'sso-token', expiresAt: end })

function fixture(config: string, environment: Record<string, string> = {}) {
  const sent: OutgoingRequest[] = []
  const files: Record<string, string> = { '/srv/g/.aws/config': config }
  const state = { status: 200, id: 'SSO' }
  const context = {
    ...fixtureContext(),
    environment: { HOME: '/srv/g', AWS_PROFILE: 'app', ...environment },
    readFileNow(path: string) {
      const text = files[path]
      if (text === undefined) throw new Error(`${path} does not exist`)
      return text
    },
    send: async (request: OutgoingRequest): Promise<Reply> => {
      sent.push(request)
      const { status, id } = state
      const roleCredentials = {
        accessKeyId: id,
        secretAccessKey: 'x',
        sessionToken: 's',
        expiration: 3_605_000,
      }
      const body = status === 200 ? { roleCredentials } : { message: 'sso-token' }
      return { status, headers: {}, body: Buffer.from(JSON.stringify(body)) }
    },
  }
  const compile = () => compileAuthorize({ aws: {} }, context)
  async function keyOf(): Promise<string | undefined> {
    const origin = 'https://bedrock-runtime.eu-west-1.amazonaws.com'
    const request = { origin, path: '/', method: 'GET', headers: {} as Record<string, string> }
    await compile()?.apply(request, noCaller)
    return /Credential=(\w+)/.exec(request.headers['authorization'] ?? '')?.[1]
  }
  const failure = () =>
    keyOf().then(
      () => expect.unreachable('keys'),
      (error: unknown) => String((error as GatewayError).cause),
    )
  return { sent, files, state, context, compile, keyOf, failure }
}

describe('a profile with a login to IAM Identity Center', () => {
  it.each([
    [ofSession, 'corp', 'https://portal.sso.eu-west-1.amazonaws.com'],
    [ofStartUrl, startUrl, 'https://portal.sso.cn-north-1.amazonaws.com.cn'],
  ])('has keys for the token of the login: %s', async (config, key, origin) => {
    const { files, sent, keyOf } = fixture(config)
    files[tokenFile(key)] = token()
    expect(await Promise.all([keyOf(), keyOf()])).toEqual(['SSO', 'SSO'])
    expect(sent).toMatchObject([
      {
        origin,
        path: '/federation/credentials?role_name=Read+Only&account_id=123456789012',
        headers: { 'x-amz-sso_bearer_token': 'sso-token' },
      },
    ])
  })

  it('reads the token again for new keys, before the old ones end', async () => {
    const { files, sent, state, context, keyOf } = fixture(ofSession, {
      AWS_ENDPOINT_URL_SSO: 'http://sso.test',
    })
    files[tokenFile('corp')] = token('1970-01-01T00:01:00UTC')
    expect(await keyOf()).toBe('SSO')
    files[tokenFile('corp')] = token().replace('sso-token', 'renewed')
    state.id = 'NEXT'
    context.clock.advance(3_300_000)
    await keyOf()
    await new Promise(setImmediate)
    expect([await keyOf(), sent[1]?.origin]).toEqual(['NEXT', 'http://sso.test'])
    expect(sent[1]?.headers['x-amz-sso_bearer_token']).toBe('renewed')
  })

  it.each([
    undefined,
    '{',
    '{}',
    token('1970-01-01T00:00:04Z'),
    token('later'),
    token().replace('sso-', '\\n'),
  ])('names the command of a login without a valid token: %s', async (text) => {
    const { files, failure, sent } = fixture(ofSession)
    if (text !== undefined) files[tokenFile('corp')] = text
    expect(await failure()).toContain(
      'profile "app": no valid token of SSO: run: aws sso login --profile app',
    )
    expect(sent).toHaveLength(0)
  })

  it.each([
    [401, 'run: aws sso login --profile app'],
    [403, 'status 403 (check sso_account_id, sso_role_name'],
  ])('reports a refusal with status %i without the token', async (status, message) => {
    const { files, state, failure } = fixture(ofSession)
    files[tokenFile('corp')] = token()
    state.status = status
    const text = await failure()
    expect(text).toContain(message)
    expect(text).not.toContain('sso-token')
  })

  it.each([
    [ofSession.replace('[sso-session corp]', '[services corp]'), '[sso-session corp] is not in'],
    [ofStartUrl.replace('sso_account_id', 'x'), 'sso_account_id is not set'],
    [ofStartUrl.replace('cn-north-1', 'x.evil.test/'), 'sso_region must be a region'],
    [
      ofSession.replace('sso_session = corp', 'sso_session = corp\nsso_region = us-east-1'),
      'sso_region must be',
    ],
  ])('is refused at load if it is incomplete: %s', (config, message) => {
    expect(() => fixture(config).compile()).toThrow(message)
  })
})
