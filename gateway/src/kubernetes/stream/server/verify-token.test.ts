import { describe, expect, it } from 'vitest'
import { ApiError } from '../../client/requests/api-error.ts'
import { createTokenReviews } from './token-review.ts'
import { createCachedVerification, type TokenVerdict } from './verify-token.ts'

const own = 'system:serviceaccount:infra:edge'

function token(claims: object): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`
}

/** Reviews that the API server answers with `status`. */
function review(status: object): Promise<TokenVerdict> {
  return createTokenReviews(async () => ({ status }))(token({ exp: 2_000_000_000 }))
}

describe('createTokenReviews', () => {
  it('requests a review for the audience of the gateway', async () => {
    const reviews: object[] = []
    const verify = createTokenReviews(async (object) => {
      reviews.push(object)
      return { status: { authenticated: true, audiences: ['tollgate'], user: { username: own } } }
    })
    const text = token({ exp: 2_000_000_000 })
    expect(await verify(text)).toEqual({
      kind: 'verified',
      namespace: 'infra',
      serviceAccount: 'edge',
      expiresAt: 2_000_000_000_000,
    })
    expect(reviews).toMatchObject([{ spec: { token: text, audiences: ['tollgate'] } }])
  })

  it.each([
    ['without audiences', { authenticated: true, user: { username: own } }],
    ['of another audience', { authenticated: true, audiences: ['vault'], user: { username: own } }],
    ['that is not authenticated', { audiences: ['tollgate'], user: { username: own } }],
    ['of a user', { authenticated: true, audiences: ['tollgate'], user: { username: 'jane' } }],
    [
      'of a user with a similar name',
      { authenticated: true, audiences: ['tollgate'], user: { username: `${own}:x` } },
    ],
  ])('refuses a token %s', async (_, status) => {
    expect((await review(status)).kind).toBe('refused')
  })

  it('refuses a token without expiry', async () => {
    const verify = createTokenReviews(() => Promise.reject(new Error('not called')))
    for (const text of ['', 'a.b.c', token({}), token({ exp: 'x' })])
      expect((await verify(text)).kind).toBe('refused')
  })

  it('reports the status of the API server, without the message of its error', async () => {
    const error = new ApiError({ status: 403 }, 'POST /apis: 403 secret-token')
    const verify = createTokenReviews(() => Promise.reject(error))
    expect(await verify(token({ exp: 2_000_000_000 }))).toEqual({
      kind: 'unavailable',
      reason: 'the API server did not review the token: status 403',
    })
  })
})

describe('createCachedVerification', () => {
  it('retains valid tokens while others send invalid ones', async () => {
    let reviews = 0
    const verify = createCachedVerification({
      async verify(text) {
        reviews += 1
        return text === 'good'
          ? { kind: 'verified', namespace: 'infra', serviceAccount: 'edge', expiresAt: 1_000_000 }
          : { kind: 'refused', reason: 'unknown' }
      },
      clock: { now: () => 0 },
    })
    await verify('good')
    for (let index = 0; index < 5_000; index++) await verify(`bad ${index}`)
    expect((await verify('good')).kind).toBe('verified')
    expect(reviews).toBe(5_001)
  })

  it('reviews a token again after a minute, and once for simultaneous requests', async () => {
    let now = 0
    let reviews = 0
    const verify = createCachedVerification({
      async verify() {
        reviews += 1
        return { kind: 'verified', namespace: 'infra', serviceAccount: 'edge', expiresAt: 1_000_000 }
      },
      clock: { now: () => now },
    })
    await Promise.all([verify('good'), verify('good'), verify('good')])
    expect(reviews).toBe(1)
    now = 60_001
    await verify('good')
    expect(reviews).toBe(2)
  })
})
