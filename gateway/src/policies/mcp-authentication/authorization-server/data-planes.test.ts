import { describe, expect, it } from 'vitest'
import { providerIssuer, startAuthorizationServer } from '../../../../test/fixtures/mcp-authentication.ts'

// Requests of one login reach the data planes of a process in turn.

const dataPlanes = 3

describe('data planes with one authorization server', () => {
  it('fetch metadata and keys of the provider once', async () => {
    const { redeem, admit, upstream } = startAuthorizationServer({}, { dataPlanes })
    const { answer } = await redeem()
    expect(answer.status).toBe(200)
    for (let plane = 0; plane < dataPlanes; plane += 1)
      expect(await admit(answer.json['access_token'])).toMatchObject({ sub: 'ada' })
    expect(upstream.count(`${providerIssuer}/keys`)).toBe(1)
    expect(upstream.count(`${providerIssuer}/.well-known/oauth-authorization-server`)).toBe(1)
  })

  it('redeem a code once, and all of them revoke its tokens after its second use', async () => {
    const { redeem, ask, admit } = startAuthorizationServer({}, { dataPlanes })
    const { form, answer } = await redeem()
    expect((await ask('token', { form })).json['error']).toBe('invalid_grant')
    for (let plane = 0; plane < dataPlanes; plane += 1)
      expect(await admit(answer.json['access_token'])).toContain('revoked')
  })

  it('redeem a code once if all of them receive it at the same time', async () => {
    const { code, ask, provider } = startAuthorizationServer({}, { dataPlanes })
    const granted = await code()
    const form = {
      grant_type: 'authorization_code',
      code: granted.code,
      client_id: granted.parameters.client_id,
      redirect_uri: granted.parameters.redirect_uri,
      code_verifier: 'v'.repeat(64),
    }
    const answers = await Promise.all(Array.from({ length: 2 * dataPlanes }, () => ask('token', { form })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(provider.requests).toHaveLength(1)
  })

  it('complete a login once', async () => {
    const { authorization, toProvider, providerAnswer, ask } = startAuthorizationServer({}, { dataPlanes })
    const query = providerAnswer(await toProvider(await authorization()))
    const answers = await Promise.all(Array.from({ length: dataPlanes }, () => ask('callback', { query })))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 400, 400])
  })

  it('refresh a token once, with the same response', async () => {
    const { redeem, ask, provider, clock } = startAuthorizationServer({}, { dataPlanes })
    const { form: granted, answer } = await redeem()
    const form = {
      grant_type: 'refresh_token',
      client_id: granted.client_id,
      refresh_token: String(answer.json['refresh_token']),
    }
    const sent = provider.requests.length
    const answers = await Promise.all(Array.from({ length: dataPlanes }, () => ask('token', { form })))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(provider.requests).toHaveLength(sent + 1)
    clock.advance(10_000)
    expect((await ask('token', { form })).json['error_description']).toContain('already used')
    const next = { ...form, refresh_token: String(answers[0]?.json['refresh_token']) }
    expect((await ask('token', { form: next })).json['error_description']).toContain('revoked')
  })

  it('count the requests of an address together', async () => {
    const { ask } = startAuthorizationServer({}, { dataPlanes })
    let accepted = 0
    while ((await ask('authorize')).status !== 429) accepted += 1
    expect(accepted).toBe(120)
  })
})
