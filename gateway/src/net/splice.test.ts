import { type Duplex, duplexPair } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { splice } from './splice.ts'

/** Two ends of a spliced pair, and what is told when it is over. */
function spliced() {
  const [left, near] = duplexPair({ allowHalfOpen: true })
  const [far, right] = duplexPair({ allowHalfOpen: true })
  const over = Promise.withResolvers<{ toLeft: number; toRight: number }>()
  splice(near, far, over.resolve)
  return { left, right, near, far, over: over.promise }
}

function collect(side: Duplex): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    side.on('error', () => {})
    side.on('data', (chunk) => {
      text += chunk
    })
    side.on('close', () => resolve(text))
    side.on('end', () => resolve(text))
  })
}

describe('two spliced connections', () => {
  it('pass everything on and count it', async () => {
    const { left, right, over } = spliced()
    const heard = [collect(left), collect(right)]
    left.end('question')
    right.end('an answer')
    expect(await Promise.all(heard)).toEqual(['an answer', 'question'])
    expect(await over).toEqual({ toLeft: 9, toRight: 8 })
  })

  it('keep one direction open when the other has ended', async () => {
    const { left, right, over } = spliced()
    left.end('question')
    expect(await collect(right)).toBe('question')
    const heard = collect(left)
    right.write('late ')
    right.end('answer')
    expect(await heard).toBe('late answer')
    await over
  })

  it('break together', async () => {
    const { left, right, near, far, over } = spliced()
    left.on('error', () => {})
    right.on('error', () => {})
    near.destroy(new Error('reset'))
    await over
    expect(far.destroyed).toBe(true)
  })

  it('are over when one was gone before', async () => {
    const [, near] = duplexPair()
    const [far] = duplexPair()
    near.destroy()
    await new Promise((resolve) => near.on('close', resolve))
    const over = Promise.withResolvers<unknown>()
    splice(near, far, over.resolve)
    expect(await over.promise).toEqual({ toLeft: 0, toRight: 0 })
    expect(far.destroyed).toBe(true)
  })

  it('hold back a side that sends more than the other reads', async () => {
    const { left, right } = spliced()
    let sent = 0
    while (left.write(Buffer.alloc(1024))) sent += 1024
    await new Promise((resolve) => setTimeout(resolve, 20))
    for (let turn = 0; turn < 200; turn++) {
      if (left.writableNeedDrain) break
      left.write(Buffer.alloc(16 * 1024))
      sent += 16 * 1024
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(left.writableNeedDrain).toBe(true)
    expect(sent).toBeLessThan(1024 * 1024)
    let received = 0
    right.on('data', (chunk) => {
      received += chunk.length
    })
    const whole = sent
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(received).toBeGreaterThanOrEqual(whole)
  })
})
