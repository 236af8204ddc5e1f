import { describe, expect, it } from 'vitest'
import { replaceReplyBody, setReplyStatus } from './reply-edits.ts'
import type { Reply } from './send.ts'

function reply(status: number, headers: Reply['headers'] = {}): Reply & { cancelled(): boolean } {
  let cancelled = false
  const body = { start() {}, resume() {}, cancel: () => (cancelled = true) }
  return { status, headers, body, cancelled: () => cancelled }
}

describe('reply edits', () => {
  it('replace the status', () => {
    const edited = reply(200)
    expect(setReplyStatus(edited, 418)).toBe(true)
    expect(edited).toMatchObject({ status: 418 })
    expect(edited.cancelled()).toBe(false)
  })

  it('discard a body that the new status does not permit', () => {
    const edited = reply(200, { 'content-type': 'text/plain', 'content-length': '3', 'x-a': '1' })
    expect(setReplyStatus(edited, 204)).toBe(true)
    expect(edited).toMatchObject({ status: 204, headers: { 'x-a': '1' }, body: undefined })
    expect(edited.headers).not.toHaveProperty('content-length')
    expect(edited.cancelled()).toBe(true)
  })

  it.each([99, 101, 199, 600, 200.5, Number.NaN])('reject the status %s', (status) => {
    const edited = reply(200)
    expect(setReplyStatus(edited, status)).toBe(false)
    expect(edited.status).toBe(200)
  })

  it('replace the body and the fields about it', () => {
    const edited = reply(200, {
      'content-type': 'a/b',
      'content-length': '3',
      'content-encoding': 'gzip',
      etag: '"x"',
    })
    expect(replaceReplyBody(edited, Buffer.from('new'))).toBe(true)
    expect(edited.headers).toEqual({ 'content-type': 'a/b', etag: 'W/"x"' })
    expect(edited.cancelled()).toBe(true)
  })

  it.each([101, 204, 304])('leave the body of status %s', (status) => {
    const edited = reply(status)
    expect(replaceReplyBody(edited, Buffer.from('new'))).toBe(false)
    expect(edited.cancelled()).toBe(false)
  })
})
