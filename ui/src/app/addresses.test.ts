import { describe, expect, it } from 'vitest'
import { decodingParser } from './addresses.tsx'

const parser = decodingParser(() => ({ pattern: /^\/models\/([^/]+?)\/?$/i, keys: ['id'] }))

describe('a parameter of an address', () => {
  it.each(['gpt-5', 'openai/gpt-5', 'a b', '100%', '50%25', 'a%2Fb', '<b>&"?#=+$', 'שלום 👩‍👧'])(
    'is the text that the link has encoded: %s',
    (id) => {
      const match = parser('/models/:id').pattern.exec(`/models/${encodeURIComponent(id)}`)
      expect(match?.[1]).toBe(id)
    },
  )

  it('with a broken escape is unchanged', () => {
    expect(parser('/models/:id').pattern.exec('/models/100%')?.[1]).toBe('100%')
  })

  it('exists in matches only', () => expect(parser('/models/:id').pattern.exec('/other')).toBeNull())
})
