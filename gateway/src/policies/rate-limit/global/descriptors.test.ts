import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { SecretText } from '../../../cel/secret-text.ts'
import { compileDescriptor } from './descriptors.ts'

const facts = (body: string) => fixtureExchange({}, { body: Buffer.from(body) }).facts
const value = (source: string) => ({ entries: [{ key: 'k', value: source }] })

describe('descriptors over request.body', () => {
  it('wait for the body, wherever they name it', () => {
    for (const config of [
      value('request.body'),
      value('request["body"] == b"a" ? "a" : "b"'),
      { ...value('"a"'), cost: 'size(request.body)' },
      { ...value('"a"'), limitOverride: '{"unit": "hour", "requestsPerUnit": size(request.body)}' },
    ])
      expect(compileDescriptor(config).needsBody).toBe(true)
    expect(compileDescriptor(value('request.path')).needsBody).toBe(false)
  })

  it('cost their value', () => {
    const { costOfRequest } = compileDescriptor({ ...value('"a"'), cost: 'size(request.body) / 2' })
    expect(costOfRequest(facts('12345678'))).toBe(4)
  })

  it('name bytes by their hash', () => {
    const { describe: describeFacts } = compileDescriptor(value('request.body'))
    const hashOfA = 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'
    expect(describeFacts(facts('a'))?.entries).toEqual([['k', `sha256:${hashOfA}`]])
    expect(describeFacts(facts(''))).toBeUndefined()
  })
})

it.each(['apiKey.key', 'jwt.rawToken', 'true ? apiKey.key : ""'])(
  'descriptors over %s name each credential by its hash',
  (source) => {
    const entriesOf = (secret: string) => {
      const text = new SecretText(secret)
      const { facts } = fixtureExchange({}, { apiKey: { id: 'a' }, jwt: {}, key: text, token: text })
      return JSON.stringify(compileDescriptor(value(source)).describe(facts)?.entries)
    }
    expect(entriesOf('alice-1')).toMatch(/sha256:[0-9a-f]{64}/)
    expect(entriesOf('alice-1')).toBe(entriesOf('alice-1'))
    expect(entriesOf('alice-1')).not.toBe(entriesOf('bob-1'))
  },
)
