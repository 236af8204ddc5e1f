import { expect, it } from 'vitest'
import { createDatabaseThread } from './database-thread.ts'

it('starts no thread after it is closed', async () => {
  const thread = createDatabaseThread<string, string>({
    script: new URL('data:text/javascript,setInterval(() => {}, 1000)'),
    start: undefined,
    name: 'tests',
    callWaitMs: 50,
    mostCalls: 1,
  })
  await thread.close()
  await expect(thread.call('call')).rejects.toThrow('is closed')
})
