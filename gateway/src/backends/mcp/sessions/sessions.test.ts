import { describe, expect, it, vi } from 'vitest'
import { type FakeTarget, fakeTarget, fixturePlaces, settle } from '../../../../test/fixtures/mcp.ts'
import type { Federation } from '../federation/federation.ts'
import { sealedLifetimeMs } from './endings.ts'
import type { SessionClient, SessionUse } from './session.ts'
import { createSessionIds } from './session-id.ts'
import { createSessions, type Sessions } from './sessions.ts'

const minute = 60_000
const ids = createSessionIds(Buffer.alloc(32, 1), 'mcp')

function fixture(
  options: { maxSessions?: number; maxPerClient?: number; maxRemembered?: number; sharedKey?: boolean } = {},
) {
  let timeMs = 1_000_000
  const clock = { now: () => timeMs, monotonic: () => timeMs }
  const create = () =>
    createSessions({
      clock,
      ids,
      sharedKey: options.sharedKey ?? true,
      ttlMs: 30 * minute,
      slots: fixturePlaces({
        maxMcpSessions: options.maxSessions ?? 100,
        maxMcpSessionsPerClient: options.maxPerClient ?? 100,
      }),
      maxEndedIds: options.maxRemembered ?? 100,
    })
  const advance = (ms: number) => {
    timeMs += ms
  }
  return { create, advance }
}

function federationOf(target: FakeTarget): Federation {
  return { target, members: [target] }
}

const clientNamed = (owner: string): SessionClient => ({ owner, quotaKey: owner })
const alice = clientNamed('alice')
const bob = clientNamed('bob')
const nobody = clientNamed('')

/** Begins a session where there is room for it. */
function tryToBegin(
  sessions: Sessions,
  target: FakeTarget,
  client = alice,
  federation = federationOf(target),
) {
  const admitted = sessions.admit(client)
  if (admitted instanceof Promise || admitted.kind === 'refused') return undefined
  const { slot } = admitted
  return sessions.begin({ target: target.open(), federation, client, revision: '2025-11-25', slot })
}

function begin(sessions: Sessions, target: FakeTarget, client = alice) {
  const session = tryToBegin(sessions, target, client)
  if (session === undefined) throw new Error('no room')
  return session
}

const use = (): SessionUse => ({ kind: 'request', end() {} })

describe('the session of an id', () => {
  const target = fakeTarget('a')
  const federation = federationOf(target)

  it('is found for its owner only', () => {
    const sessions = fixture().create()
    const session = begin(sessions, target)
    expect(sessions.find(session.id, federation, alice)).toBe(session)
    expect(sessions.find(session.id, federation, bob)).toBeUndefined()
    expect(sessions.find(session.id, federation, nobody)).toBeUndefined()
  })

  it('is resumed in another process with the key, for its owner', () => {
    const { create } = fixture()
    const { id } = begin(create(), target)
    const elsewhere = create()
    expect(elsewhere.find(id, federation, bob)).toBeUndefined()
    expect(elsewhere.find(id, federation, alice)?.target.state()).toEqual({ n: 'a' })
  })

  it('does not go on in another process when it needs this one', () => {
    const { create } = fixture()
    const pinned = fakeTarget('a', { pinned: true })
    const sessions = create()
    const { id } = begin(sessions, pinned)
    expect(sessions.find(id, federationOf(pinned), alice)).toBeDefined()
    expect(create().find(id, federationOf(pinned), alice)).toBeUndefined()
  })

  it('does not go on with other targets', () => {
    const { create } = fixture()
    const { id } = begin(create(), target)
    expect(create().find(id, federationOf(fakeTarget('b')), alice)).toBeUndefined()
  })

  it('is none for an id that was made up', () => {
    expect(fixture().create().find('7a1c', federation, alice)).toBeUndefined()
  })
})

describe('the end of a session', () => {
  it('closes the target once and is final, also for a sealed id', async () => {
    const sessions = fixture().create()
    const target = fakeTarget('a')
    const session = begin(sessions, target)
    await sessions.end(session, 'it was ended')
    await sessions.end(session, 'it was ended')
    expect(target.sessions[0]?.closed).toBe(1)
    expect(sessions.find(session.id, federationOf(target), alice)).toBeUndefined()
  })

  it('comes when it has not been used for its time', () => {
    const { create, advance } = fixture()
    const sessions = create()
    const target = fakeTarget('a')
    const session = begin(sessions, target)
    advance(29 * minute)
    expect(sessions.find(session.id, federationOf(target), alice)).toBe(session)
    advance(30 * minute)
    expect(sessions.find(session.id, federationOf(target), alice)).toBeUndefined()
    expect(target.sessions[0]?.closed).toBe(1)
  })

  it('comes by itself', () => {
    const { create, advance } = fixture()
    const sessions = create()
    const target = fakeTarget('a')
    begin(sessions, target)
    advance(31 * minute)
    sessions.sweep()
    expect(sessions.size).toBe(0)
    expect(target.sessions[0]?.closed).toBe(1)
  })

  it('does not come for want of use while a stream is open', () => {
    const { create, advance } = fixture()
    const sessions = create()
    const session = begin(sessions, fakeTarget('a'))
    session.uses.push(use())
    advance(60 * minute)
    sessions.sweep()
    expect(sessions.size).toBe(1)
  })

  it('comes for a sealed session after its lifetime, here and elsewhere, however busy it is', () => {
    const { create, advance } = fixture()
    const [sessions, elsewhere] = [create(), create()]
    const target = fakeTarget('a')
    const session = begin(sessions, target)
    session.uses.push(use())
    advance(sealedLifetimeMs - 1)
    expect(elsewhere.find(session.id, federationOf(target), alice)).toBeDefined()
    advance(1)
    sessions.sweep()
    expect(sessions.size).toBe(0)
    expect(elsewhere.find(session.id, federationOf(target), alice)).toBeUndefined()
    expect(create().find(session.id, federationOf(target), alice)).toBeUndefined()
  })

  it('follows the end of its target, and is reported to its uses', () => {
    const sessions = fixture().create()
    const target = fakeTarget('a')
    const session = begin(sessions, target)
    const told = vi.fn()
    session.uses.push({ kind: 'request', end: told })
    target.sessions[0]?.die('exit code 1')
    expect(told).toHaveBeenCalledOnce()
    expect(sessions.find(session.id, federationOf(target), alice)).toBeUndefined()
  })

  it('stays final when more sessions have ended than are remembered', async () => {
    const { create, advance } = fixture({ maxRemembered: 3 })
    const sessions = create()
    const target = fakeTarget('a')
    const ended: string[] = []
    for (let count = 0; count < 10; count += 1) {
      const session = begin(sessions, target)
      ended.push(session.id)
      await sessions.end(session, 'it was ended')
      advance(1_000)
    }
    for (const id of ended) expect(sessions.find(id, federationOf(target), alice)).toBeUndefined()
    const later = begin(sessions, target)
    expect(sessions.find(later.id, federationOf(target), alice)).toBe(later)
  })
})

describe('a changed configuration', () => {
  it('ends the sessions of targets that changed and keeps the others', () => {
    const sessions = fixture().create()
    const [kept, changed] = [fakeTarget('a', { pinned: true }), fakeTarget('b', { pinned: true })]
    const one = begin(sessions, kept)
    const other = begin(sessions, changed)
    const next: Federation = { target: fakeTarget('both'), members: [kept, fakeTarget('b')] }
    sessions.retain(next)
    expect(sessions.find(one.id, next, alice)).toBe(one)
    expect(sessions.find(other.id, next, alice)).toBeUndefined()
    expect(changed.sessions[0]?.closed).toBe(1)
    expect(kept.sessions[0]?.closed).toBe(0)
  })
})

describe('a session whose target changed', () => {
  it('is over when it is asked for', () => {
    const sessions = fixture().create()
    const target = fakeTarget('a', { pinned: true })
    const session = begin(sessions, target)
    expect(sessions.find(session.id, federationOf(fakeTarget('a', { pinned: true })), alice)).toBeUndefined()
    expect(target.sessions[0]?.closed).toBe(1)
  })
})

describe('too many sessions', () => {
  it('push out of memory those that can go on without it, without ending them', () => {
    const sessions = fixture({ maxSessions: 2 }).create()
    const target = fakeTarget('a')
    const first = begin(sessions, target)
    begin(sessions, target)
    begin(sessions, target)
    expect(sessions.size).toBe(2)
    expect(target.sessions[0]?.closed).toBe(0)
    expect(sessions.find(first.id, federationOf(target), alice)?.id).toBe(first.id)
  })

  it('end those of this process alone only when they are unused, the longest first', () => {
    const { create, advance } = fixture({ maxSessions: 2 })
    const sessions = create()
    const target = fakeTarget('a', { pinned: true })
    const federation = federationOf(target)
    const first = begin(sessions, target)
    const second = begin(sessions, target)
    for (const { id } of [first, second]) sessions.find(id, federation, alice)
    expect(tryToBegin(sessions, target)).toBeUndefined()
    advance(2 * minute)
    sessions.find(first.id, federation, alice)
    expect(tryToBegin(sessions, target)).toBeDefined()
    expect(sessions.find(first.id, federation, alice)).toBe(first)
    expect(sessions.find(second.id, federation, alice)).toBeUndefined()
  })

  it('never end one in use', () => {
    const { create, advance } = fixture({ maxSessions: 1 })
    const sessions = create()
    const target = fakeTarget('a', { pinned: true })
    const session = begin(sessions, target)
    session.uses.push(use())
    advance(5 * minute)
    expect(tryToBegin(sessions, target)).toBeUndefined()
  })
})

describe('sessions of one client above its bound', () => {
  it('are refused, and those of others are not', () => {
    const sessions = fixture({ maxPerClient: 2 }).create()
    const target = fakeTarget('a')
    begin(sessions, target)
    begin(sessions, target)
    expect(sessions.admit(alice)).toMatchObject({
      kind: 'refused',
      bound: 'client',
      failure: { status: 429, message: expect.stringContaining('at most 2') },
    })
    expect(tryToBegin(sessions, target, bob)).toBeDefined()
  })

  it('end the one that is unused for the longest time, also at its target', async () => {
    const { create, advance } = fixture({ maxPerClient: 2 })
    const sessions = create()
    const target = fakeTarget('a')
    const first = begin(sessions, target)
    begin(sessions, target)
    advance(2 * minute)
    expect(tryToBegin(sessions, target)).toBeDefined()
    expect(target.sessions.map(({ closed }) => closed)).toEqual([1, 0, 0])
    expect(sessions.endReasonOf(first.id, alice)).toContain('its place was needed')
  })

  it('go on from their ids, because others are put out of memory for them', () => {
    const { create } = fixture({ maxPerClient: 1 })
    const target = fakeTarget('a')
    const one = begin(create(), target)
    const sessions = create()
    const two = begin(sessions, target)
    expect(sessions.find(one.id, federationOf(target), alice)?.id).toBe(one.id)
    expect(sessions.find(two.id, federationOf(target), alice)?.id).toBe(two.id)
    expect([sessions.size, target.sessions.every(({ closed }) => closed === 0)]).toEqual([1, true])
  })

  it('have their place again once one has ended', async () => {
    const sessions = fixture({ maxPerClient: 1 }).create()
    const target = fakeTarget('a')
    await sessions.end(begin(sessions, target), 'it was ended')
    expect(tryToBegin(sessions, target)).toBeDefined()
  })
})

describe('a session without a message after its beginning', () => {
  it.each([
    [true, undefined],
    [false, 'a'],
  ])('ends after 30 s where it has a program (%s), else with the others', (pinned, left) => {
    const { create, advance } = fixture()
    const sessions = create()
    const target = fakeTarget('a', { pinned })
    const { id } = begin(sessions, target)
    advance(minute / 2)
    sessions.sweep()
    expect(sessions.find(id, federationOf(target), alice)?.target.state()?.['n']).toBe(left)
  })

  it('ends with the others once it had one', () => {
    const { create, advance } = fixture()
    const sessions = create()
    const target = fakeTarget('a', { pinned: true })
    const { id } = begin(sessions, target)
    sessions.find(id, federationOf(target), alice)
    advance(2 * minute)
    sessions.sweep()
    expect(sessions.find(id, federationOf(target), alice)).toBeDefined()
  })
})

describe('the end of the process', () => {
  it('leaves sealed sessions open at their targets, for the next process with the key', async () => {
    const sessions = fixture().create()
    const [sealed, pinned] = [fakeTarget('a'), fakeTarget('b', { pinned: true })]
    begin(sessions, sealed)
    begin(sessions, pinned)
    await sessions.stop()
    expect(sealed.sessions[0]?.closed).toBe(0)
    expect(pinned.sessions[0]?.closed).toBe(1)
  })

  it('closes all of them where the key dies with it', async () => {
    const sessions = fixture({ sharedKey: false }).create()
    const sealed = fakeTarget('a')
    begin(sessions, sealed)
    await sessions.stop()
    expect(sealed.sessions[0]?.closed).toBe(1)
  })

  it('ends streams at once and waits for requests', async () => {
    const sessions = fixture().create()
    const target = fakeTarget('a', { pinned: true })
    const session = begin(sessions, target)
    const request = use()
    const stream: SessionUse = { kind: 'stream', end: () => sessions.release(session, stream) }
    session.uses.push(request, stream)
    const stopped = vi.fn()
    const stop = sessions.stop().then(stopped)
    await settle()
    expect(session.uses.length).toBe(1)
    expect(stopped).not.toHaveBeenCalled()
    expect(target.sessions[0]?.closed).toBe(0)
    sessions.release(session, request)
    await stop
    expect(target.sessions[0]?.closed).toBe(1)
  })

  it('does not wait for a session that ends meanwhile', async () => {
    const sessions = fixture().create()
    const session = begin(sessions, fakeTarget('a', { pinned: true }))
    session.uses.push(use())
    const stop = sessions.stop()
    await sessions.end(session, 'it was ended')
    await expect(stop).resolves.toBeUndefined()
  })

  it('lets sessions begin again where the endpoint is only configured anew', async () => {
    const sessions = fixture().create()
    await sessions.stop()
    const target = fakeTarget('a', { pinned: true })
    const session = begin(sessions, target)
    const request = use()
    session.uses.push(request)
    sessions.release(session, request)
    await settle()
    expect(target.sessions[0]?.closed).toBe(0)
    expect(sessions.find(session.id, federationOf(target), alice)).toBe(session)
  })
})
