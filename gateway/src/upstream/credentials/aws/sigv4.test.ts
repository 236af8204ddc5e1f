import { describe, expect, it } from 'vitest'
import { bodyHashOf, createSigner, emptyHash, signatureDate } from './sigv4.ts'

// AWS's published test suite of Signature Version 4 (aws-sig-v4-test-suite).

const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const sign = createSigner({ region: 'us-east-1', service: 'service' })
const date = '20150830T123600Z'
const unreserved = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const token =
  'AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=='

type Vector = {
  method?: string
  path?: string
  query?: string
  headers?: [string, string][]
  body?: string
  signature: string
}

const vanilla = '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'
const posted = '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'
const postedQuery = '28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11'

const vectors: Record<string, Vector> = {
  'get-vanilla': { signature: vanilla },
  'get-header-key-duplicate': {
    headers: [['my-header1', 'value2,value2,value1']],
    signature: 'c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea',
  },
  'get-header-value-multiline': {
    headers: [['my-header1', 'value1  value2     value3']],
    signature: 'cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd',
  },
  'get-header-value-order': {
    headers: [['my-header1', 'value4,value1,value3,value2']],
    signature: '08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01',
  },
  'get-header-value-trim': {
    headers: [
      ['my-header1', ' value1'],
      ['my-header2', ' "a   b   c"'],
    ],
    signature: 'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
  },
  'get-unreserved': {
    path: `/${unreserved}`,
    signature: '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
  },
  'get-utf8': {
    path: '/ሴ',
    signature: '8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85',
  },
  'get-space': {
    path: '/example space/',
    signature: '652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741',
  },
  'get-special-character': {
    path: '/example/$delete',
    signature: 'a853c9b21b528b19643d00910d35b83a10c366a10833ceefb45edd6c80e40f27',
  },
  'get-relative': { path: '/example/..', signature: vanilla },
  'get-relative-relative': { path: '/example1/example2/../..', signature: vanilla },
  'get-slash': { path: '//', signature: vanilla },
  'get-slash-dot-slash': { path: '/./', signature: vanilla },
  'get-slash-pointless-dot': {
    path: '/./example',
    signature: 'ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5',
  },
  'get-slashes': {
    path: '//example//',
    signature: '9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84',
  },
  'get-vanilla-empty-query-key': {
    query: '?Param1=value1',
    signature: 'a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb',
  },
  'get-vanilla-query': { query: '', signature: vanilla },
  'get-vanilla-query-order-encoded': {
    query: '?Param-3=Value3&Param=Value2&%E1%88%B4=Value1',
    signature: '371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac',
  },
  'get-vanilla-query-order-key': {
    query: '?Param1=value2&Param1=Value1',
    signature: 'eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1',
  },
  'get-vanilla-query-order-key-case': {
    query: '?Param2=value2&Param1=value1',
    signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  },
  'get-vanilla-query-order-value': {
    query: '?Param1=value2&Param1=value1',
    signature: '5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694',
  },
  'get-vanilla-query-unreserved': {
    query: `?${unreserved}=${unreserved}`,
    signature: '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
  },
  'get-vanilla-utf8-query': {
    query: '?ሴ=bar',
    signature: '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
  },
  'post-vanilla': { method: 'POST', signature: posted },
  'post-vanilla-query': { method: 'POST', query: '?Param1=value1', signature: postedQuery },
  'post-header-key-sort': {
    method: 'POST',
    headers: [['my-header1', 'value1']],
    signature: 'c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c',
  },
  'post-header-value-case': {
    method: 'POST',
    headers: [['my-header1', 'VALUE1']],
    signature: 'cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d',
  },
  'post-sts-header-before': {
    method: 'POST',
    headers: [['x-amz-security-token', token]],
    signature: '85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead',
  },
  'post-x-www-form-urlencoded': {
    method: 'POST',
    headers: [['content-type', 'application/x-www-form-urlencoded']],
    body: 'Param1=value1',
    signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  },
  'post-x-www-form-urlencoded-parameters': {
    method: 'POST',
    headers: [['content-type', 'application/x-www-form-urlencoded; charset=utf8']],
    body: 'Param1=value1',
    signature: '1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe',
  },
}

describe('signatures of the published test suite', () => {
  it.each(Object.entries(vectors))(
    '%s',
    (_, { method = 'GET', path = '/', query = '', headers = [], body, signature }) => {
      const all: [string, string][] = [...headers, ['host', 'example.amazonaws.com'], ['x-amz-date', date]]
      const sorted = all.sort(([one], [other]) => (one < other ? -1 : 1))
      const names = sorted.map(([name]) => name).join(';')
      const input = { method, path, query, headers: sorted, bodyHash: bodyHashOf(body) }
      expect(sign(input, credentials, date)).toBe(
        `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
      )
    },
  )
})

const input = { method: 'GET', path: '/a%20b', query: '', headers: [], bodyHash: emptyHash }

describe('createSigner', () => {
  it('encodes an encoded path again, except for S3', () => {
    const plain = (service: string, path: string) =>
      createSigner({ region: 'r', service })({ ...input, path }, credentials, date)
    expect(plain('bedrock', '/a%20b')).not.toBe(plain('bedrock', '/a b'))
    expect(plain('s3', '/a//b')).not.toBe(plain('s3', '/a/b'))
  })

  it('uses another key on the next day and for another secret', () => {
    const first = sign(input, credentials, '20150830T235959Z')
    expect(sign(input, credentials, '20150831T000000Z')).not.toBe(first)
    expect(sign(input, { ...credentials, secretAccessKey: 'other' }, '20150830T235959Z')).not.toBe(first)
    expect(sign(input, credentials, '20150830T235959Z')).toBe(first)
  })
})

it('formats the date of a signature', () => {
  expect(signatureDate(Date.UTC(2015, 7, 30, 12, 36, 0, 999))).toBe(date)
})

it('hashes texts and bytes alike', () => {
  expect(bodyHashOf('ü')).toBe(bodyHashOf(Buffer.from('ü')))
  expect(bodyHashOf(new Uint8Array())).toBe(emptyHash)
})
