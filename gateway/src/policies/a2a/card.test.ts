import { describe, expect, it } from 'vitest'
import { differingPrefixes, rewriteCard } from './card.ts'

const origin = 'https://gw.test'

function rewritten(card: Parameters<typeof rewriteCard>[0], received: string, forwarded = received) {
  return [rewriteCard(card, { origin, ...differingPrefixes(received, forwarded) }), card]
}

describe('agent cards', () => {
  const card = '/.well-known/agent-card.json'

  it.each([
    ['http://agent:9999/', card, card, 'https://gw.test/'],
    ['http://agent:9999', card, card, 'https://gw.test'],
    ['http://agent:9999/a2a/jsonrpc', card, card, 'https://gw.test/a2a/jsonrpc'],
    ['http://agent/a2a?x=1#f', `/weather${card}`, card, 'https://gw.test/weather/a2a?x=1'],
    ['http://agent/internal/rpc', `/weather${card}`, `/internal${card}`, 'https://gw.test/weather/rpc'],
    ['http://agent/internal', `/weather${card}`, `/internal${card}`, 'https://gw.test/weather'],
    [
      'http://agent/internal-2/x',
      `/weather${card}`,
      `/internal${card}`,
      'https://gw.test/weather/internal-2/x',
    ],
    ['agent:50051', card, card, 'https://gw.test'],
  ])('rewrite %s behind %s, forwarded as %s', (url, received, forwarded, expected) => {
    expect(rewritten({ url }, received, forwarded)).toEqual([true, { url: expected }])
  })

  it('rewrite all interfaces, and drop signatures', () => {
    const interfaces = [{ url: 'http://agent/grpc', transport: 'GRPC' }, { transport: 'JSONRPC' }]
    expect(
      rewritten(
        { additionalInterfaces: interfaces, supportedInterfaces: [{ url: 'http://agent/' }], signatures: [] },
        card,
      ),
    ).toEqual([
      true,
      {
        additionalInterfaces: [{ url: 'https://gw.test/grpc', transport: 'GRPC' }, { transport: 'JSONRPC' }],
        supportedInterfaces: [{ url: 'https://gw.test/' }],
      },
    ])
  })

  it('remain without an address', () => {
    expect(rewritten({ name: 'a', signatures: [] }, card)).toEqual([false, { name: 'a', signatures: [] }])
  })
})
