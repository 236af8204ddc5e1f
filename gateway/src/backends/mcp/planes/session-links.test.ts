import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import { linkPeers } from '../../../../test/support/linked-peers.ts'
import { createSessionHub, type SessionLinks } from './session-links.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

let close: (() => void) | undefined
afterEach(() => close?.())

/** Links of a hub that nothing else references, as after a reload. */
function links(): { joined: SessionLinks | undefined; hub: WeakRef<object> } {
  const linked = linkPeers(2)
  close = linked.close
  const [first] = linked.peers
  if (first === undefined) throw new Error('no peers')
  const hub = createSessionHub(first)
  return { joined: hub.join('mcp'), hub: new WeakRef(hub) }
}

describe('the hub of sessions', () => {
  it('is not collected while one of its links exists', async () => {
    const { joined, hub } = links()
    await turn()
    collectGarbage()
    expect(hub.deref()).toBeDefined()
    expect(joined?.hub).toBe(hub.deref())
  })

  it('has no links with a single data plane', () => {
    const linked = linkPeers(1)
    close = linked.close
    const [only] = linked.peers
    expect(only && createSessionHub(only).join('mcp')).toBeUndefined()
  })
})
