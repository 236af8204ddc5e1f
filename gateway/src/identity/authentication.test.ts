import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { type CredentialLocation, compileLocation } from '../upstream/credentials/credential-location.ts'
import { type AuthenticationCheck, compileAuthentication } from './authentication.ts'

const place = (name: string): CredentialLocation => compileLocation({ header: { name } })

/** Accepts the value of a header; refuses requests without it. */
function wants(name: string, { late }: { late?: boolean } = {}): AuthenticationCheck {
  const location = place(name)
  return (exchange) => {
    const credential = location.read(exchange.facts)
    const outcome =
      credential === undefined
        ? { kind: 'refused' as const, reply: { status: 401, headers: {}, body: undefined } }
        : { kind: 'accepted' as const, credential, locations: [location] }
    return late === true ? Promise.resolve(outcome) : outcome
  }
}

async function send(checks: AuthenticationCheck[], headers: Record<string, string>) {
  const exchange = fixtureExchange({ headers })
  const reply = await compileAuthentication('test', checks).onRequest?.(exchange)
  return { status: reply?.status, left: exchange.facts.request.headers }
}

describe('authentication', () => {
  it('removes an accepted credential after a synchronous or asynchronous check', async () => {
    for (const late of [false, true]) {
      expect(await send([wants('x-a', { late })], { 'x-a': '1', 'x-b': '2' })).toEqual({
        status: undefined,
        left: { 'x-b': '2' },
      })
      expect(await send([wants('x-a', { late })], { 'x-b': '2' })).toEqual({
        status: 401,
        left: { 'x-b': '2' },
      })
    }
  })

  it('returns synchronously if the check does', () => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1' } })
    expect(compileAuthentication('test', [wants('x-a')]).onRequest?.(exchange)).toBeUndefined()
  })

  it('runs several checks on the same credential', async () => {
    const checks = [wants('x-a'), wants('x-a', { late: true }), wants('x-b')]
    expect(await send(checks, { 'x-a': '1', 'x-b': '2', 'x-c': '3' })).toEqual({
      status: undefined,
      left: { 'x-c': '3' },
    })
  })

  it('records the credential of the first check for targets that receive it', async () => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1', 'x-b': '2' } })
    await compileAuthentication('test', [wants('x-a'), wants('x-b')]).onRequest?.(exchange)
    expect(exchange.auth.credential).toBe('1')
  })

  it('refuses if one of several checks refuses', async () => {
    expect((await send([wants('x-a'), wants('x-b')], { 'x-a': '1' })).status).toBe(401)
    expect((await send([wants('x-b'), wants('x-a')], { 'x-a': '1' })).status).toBe(401)
  })

  it('admits requests without a verdict of any check', async () => {
    const silent: AuthenticationCheck = () => undefined
    expect(await send([silent, silent], { 'x-a': '1' })).toEqual({ status: undefined, left: { 'x-a': '1' } })
  })
})
