import { expect, it } from 'vitest'
import { createBatches } from './batches.ts'

function recorded(mostItems: number, mostBytes: number) {
  const batches: string[][] = []
  const { add, idle } = createBatches<string, number>({
    mostItems,
    mostBytes,
    sizeOf: (text) => text.length,
    async run(texts) {
      batches.push([...texts])
      if (texts.includes('bad')) throw new Error('refused')
      return texts.map((text) => text.length)
    },
  })
  return { add, idle, batches }
}

it('processes waiting items together, in order', async () => {
  const { add, idle, batches } = recorded(2, 100)
  expect(await Promise.all(['a', 'bb', 'ccc'].map(add))).toEqual([1, 2, 3])
  await idle()
  expect(await add('dddd')).toBe(4)
  expect(batches).toEqual([['a', 'bb'], ['ccc'], ['dddd']])
})

it('limits the size of a batch, not that of an item', async () => {
  const { add, batches } = recorded(10, 4)
  await Promise.all(['aaaaaa', 'b', 'ccc', 'd'].map(add))
  expect(batches).toEqual([['aaaaaa'], ['b', 'ccc'], ['d']])
})

it('rejects the items of a failed batch only', async () => {
  const { add } = recorded(1, 100)
  const outcomes = await Promise.allSettled(['bad', 'a'].map(add))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
})
