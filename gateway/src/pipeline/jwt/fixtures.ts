import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { CompactSign, SignJWT } from 'jose'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { OutgoingRequest, Reply, Send } from '../../net/send.ts'
import type { Exchange } from '../exchange.ts'
import { type FixtureContext, fixtureContext } from '../fixtures.ts'
import type { Policy } from '../policy.ts'

/** What the tests of this folder stand on: an identity provider without sockets, and the keys it signs with. */
export type SigningPair = { id: string; algorithm: string; privateKey: KeyObject; jwk: JsonObject }

export function signingPair(id: string, algorithm: 'RS256' | 'ES256' | 'EdDSA' = 'ES256'): SigningPair {
  const { publicKey, privateKey } = generatePair(algorithm)
  return { id, algorithm, privateKey, jwk: { ...exported(publicKey), kid: id, use: 'sig' } }
}

function generatePair(algorithm: string) {
  if (algorithm === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519')
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

function exported(key: KeyObject): JsonObject {
  return JSON.parse(JSON.stringify(key.export({ format: 'jwk' })))
}

export const issuer = 'https://id.example.com:8443/realms/main'
export const audience = 'http://localhost:3000/mcp'

/** A token of the fixtures' issuer and audience that is valid at `nowMs` for five minutes, but for what `claims` say; undefined leaves one out. */
export function signToken(
  pair: SigningPair,
  nowMs: number,
  claims: Record<string, unknown> = {},
  header: { kid?: string | undefined } = {},
): Promise<string> {
  const seconds = Math.floor(nowMs / 1000)
  const { kid } = { kid: pair.id, ...header }
  return new SignJWT({ iss: issuer, aud: audience, sub: 'ada', exp: seconds + 300, ...claims })
    .setProtectedHeader({ alg: pair.algorithm, ...(kid === undefined ? {} : { kid }) })
    .sign(pair.privateKey)
}

export function keySetOf(...pairs: readonly SigningPair[]): string {
  return JSON.stringify({ keys: pairs.map((pair) => pair.jwk) })
}

/** An upstream whose answers a test puts in by URL. What is not there is a connection refused. */
export type FakeUpstream = {
  send: Send
  readonly answers: Map<string, Answer>
  readonly requests: OutgoingRequest[]
  /** How often a URL was asked for. */
  count(url: string): number
}

type Answer =
  | { status?: number; headers?: Record<string, string>; text: string }
  | ((request: OutgoingRequest) => Promise<Reply> | Reply)

export function fakeUpstream(): FakeUpstream {
  const answers = new Map<string, Answer>()
  const requests: OutgoingRequest[] = []
  return {
    answers,
    requests,
    count: (url) => requests.filter((request) => request.origin + request.path === url).length,
    async send(request) {
      requests.push(request)
      const answer = answers.get(request.origin + request.path)
      if (answer === undefined) throw new GatewayError('upstream_connect', 'connection refused')
      if (typeof answer === 'function') return answer(request)
      return { status: answer.status ?? 200, headers: answer.headers ?? {}, body: Buffer.from(answer.text) }
    },
  }
}

/** A context whose calls go to a fake upstream. */
export function upstreamContext(): { context: FixtureContext; upstream: FakeUpstream } {
  const upstream = fakeUpstream()
  return { context: { ...fixtureContext(), send: upstream.send }, upstream }
}

/** Sends an exchange through policies in order; the backend answers 200. */
export async function throughAll(policies: readonly Policy[], exchange: Exchange): Promise<Reply> {
  for (const policy of policies) {
    const reply = await policy.onRequest?.(exchange)
    if (reply !== undefined) return reply
  }
  return { status: 200, headers: {}, body: undefined }
}

/** A token whose payload is this text, for numbers that values cannot have. */
export function signPayload({ algorithm, id, privateKey }: SigningPair, text: string): Promise<string> {
  const header = { alg: algorithm, ...(id === undefined ? {} : { kid: id }) }
  return new CompactSign(Buffer.from(text)).setProtectedHeader(header).sign(privateKey)
}
