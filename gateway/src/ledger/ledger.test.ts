import { tmpdir } from 'node:os'
import { expect, it } from 'vitest'
import { endAfter } from '../../test/support/cleanup.ts'
import { until } from '../../test/support/wait.ts'
import { ledgerSettingsOf } from './config.ts'
import { type Ledger, openLedger } from './ledger.ts'

/** A thread that runs `receive(message)` for each message, with `send` to respond. */
function openWith(receive: string): { ledger: Ledger; logged: string[]; dropped: number[] } {
  const program = `
    import { parentPort, workerData } from 'node:worker_threads'
    const send = (message) => parentPort.postMessage(message)
    const status = (more) => send({ kind: 'status', status: { connected: true, queuedRows: 0, spoolBytes: 0,
      written: 0, retried: 0, droppedDetails: 0, droppedRows: 0, damaged: 0, ...more } })
    parentPort.on('message', (message) => { ${receive} })
  `
  const settings = ledgerSettingsOf({ database: { url: 'sqlite://unused.db' } })
  if (settings === undefined) throw new Error('no settings')
  const logged: string[] = []
  const dropped: number[] = []
  const log = (_fields: object, message: string) => void logged.push(message)
  const silent = () => {}
  const ledger = openLedger({
    settings,
    log: { debug: log, info: log, warn: log, error: log, audit: log },
    meter: {
      queue: silent,
      written: silent,
      retried: silent,
      dropped: (kind, count) => void (kind === 'rows' && dropped.push(count)),
      damaged: silent,
    },
    randomUuid: () => '11111111-1111-4111-8111-111111111111',
    temporaryFolder: tmpdir(),
    threadUrl: new URL(`data:text/javascript,${encodeURIComponent(program)}`),
  })
  endAfter('test', () => ledger.close())
  return { ledger, logged, dropped }
}

const closes = `if (message.kind === 'close') send({ kind: 'closed' })`

it('resolves when the writer has accepted lines', async () => {
  const { ledger } = openWith(
    `if (message.kind === 'lines') send({ kind: 'accepted', number: message.number }); ${closes}`,
  )
  await ledger.accept({ lines: 'a\n', rows: 1 })
  await ledger.accept({ lines: 'b\n', rows: 1 })
})

it('replaces a failed thread, and repeats what it has not accepted', async () => {
  // The first number that a thread receives shows whether it is a later one.
  const { ledger, logged } = openWith(`
    globalThis.received ??= []
    if (message.kind === 'lines') {
      received.push(message.number)
      if (message.number === 2 && received.includes(1)) throw new Error('broken')
      send({ kind: 'accepted', number: message.number })
    }
    ${closes}`)
  await ledger.accept({ lines: 'a\n', rows: 1 })
  await ledger.accept({ lines: 'b\n', rows: 1 })
  await ledger.accept({ lines: 'c\n', rows: 1 })
  expect(logged).toEqual(['ledger writer ended, restarted'])
})

it('passes totals of budgets to all listeners, also of a replaced thread', async () => {
  const { ledger } = openWith(`
    if (message.kind === 'lines') throw new Error('broken')
    if (message.kind === 'watchBudgets') send({ kind: 'budgets', update: { totals: [], confirmed: [] } })
    ${closes}`)
  const updates: object[] = []
  ledger.watchBudgets((update) => updates.push(update))
  await until('the first update', () => updates.length === 1)
  void ledger.accept({ lines: 'a\n', rows: 1 })
  await until('an update of the next thread', () => updates.length === 2)
})

it('adds up the counts of all threads', async () => {
  const { ledger, dropped } = openWith(`
    if (message.kind === 'lines') {
      status({ droppedRows: 5 })
      status({ droppedRows: 7 })
      send({ kind: 'accepted', number: message.number })
    }
    ${closes}`)
  await ledger.accept({ lines: 'a\n', rows: 1 })
  expect(dropped).toEqual([5, 2])
  expect(ledger.status()).toMatchObject({ database: 'sqlite', droppedRows: 7 })
})

it('reports settings that are not valid', async () => {
  const { ledger } = openWith(closes)
  const invalid = openWith(`send({ kind: 'invalid', message: 'not an address' }); ${closes}`)
  void invalid.ledger.accept({ lines: 'a\n', rows: 1 })
  await expect(invalid.ledger.ready).rejects.toThrow('not an address')
  await ledger.close()
})
