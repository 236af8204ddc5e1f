import { afterEach, describe, expect, it, vi } from 'vitest'
import { fakeUpstream } from '../../../test/fixtures/jwt.ts'
import type { BodySource } from '../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import { fetchDocument } from './fetch-document.ts'

const url = 'https://id.example.com:8443/a/b?c=d'
const limits = { url, maxBytes: 100, timeoutMs: 1_000 }

afterEach(() => {
  vi.useRealTimers()
})

describe('fetching a document', () => {
  it('returns status, headers and text', async () => {
    const upstream = fakeUpstream()
    upstream.answers.set(url, { status: 418, headers: { a: 'b' }, text: 'täxt' })
    expect(await fetchDocument(upstream.send, limits)).toEqual({
      status: 418,
      headers: { a: 'b' },
      text: 'täxt',
    })
    expect(upstream.requests[0]).toMatchObject({ method: 'GET', headers: { accept: 'application/json' } })
  })

  it('fails if the document is too large', async () => {
    const upstream = fakeUpstream()
    upstream.answers.set(url, { text: 'x'.repeat(101) })
    await expect(fetchDocument(upstream.send, limits)).rejects.toMatchObject({ code: 'upstream_too_large' })
  })

  it('fails and cancels the request after the timeout', async () => {
    vi.useFakeTimers()
    let request: OutgoingRequest | undefined
    const send = (sent: OutgoingRequest) => {
      request = sent
      return new Promise<Reply>(() => {})
    }
    const outcome = expect(fetchDocument(send, limits)).rejects.toMatchObject({ code: 'upstream_timeout' })
    await vi.advanceTimersByTimeAsync(1_000)
    await outcome
    expect(request?.cancellation?.cancelled).toBe(true)
  })

  it('applies the timeout to an endless body', async () => {
    vi.useFakeTimers()
    const endless: BodySource = { start() {}, resume() {}, cancel() {} }
    const send = async (): Promise<Reply> => ({ status: 200, headers: {}, body: endless })
    const outcome = expect(fetchDocument(send, limits)).rejects.toMatchObject({ code: 'upstream_timeout' })
    await vi.advanceTimersByTimeAsync(1_000)
    await outcome
  })
})
