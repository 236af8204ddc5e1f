import { describe, expect, it } from 'vitest'
import { isWithheldHeader } from './withheld-headers.ts'

describe('withheld headers', () => {
  it.each([
    ...[
      'x-forwarded-for',
      'x-forwarded-user',
      'forwarded',
      'x-real-ip',
      'true-client-ip',
      'cf-connecting-ip',
    ],
    ...['x_forwarded_for', 'x-real_ip', 'x_team', 'content_length'],
    ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-method'],
    ...['x-original-url', 'x-original-uri', 'x-rewrite-url', 'proxy'],
  ])('are %s', (name) => {
    expect(isWithheldHeader(name)).toBe(true)
  })

  it.each(['accept', 'authorization', 'x-team', 'x-request-id', 'traceparent', 'proxy-hint', 'x-original'])(
    'are not %s',
    (name) => {
      expect(isWithheldHeader(name)).toBe(false)
    },
  )
})
