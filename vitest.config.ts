import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { SlowFirst } from './gateway/test/support/slow-first.ts'

// Half of the work of starting a process is reading and compiling its source, and hundreds of them are started.
const env = { NODE_COMPILE_CACHE: fileURLToPath(new URL('.cache/compile', import.meta.url)) }

const setupFiles = ['gateway/test/support/cleanup-hooks.ts']

// Timers of an earlier file in the same process would count as well.
const timerCounts = globSync('gateway/src/**/*.test.ts', { cwd: import.meta.dirname }).filter((file) =>
  readFileSync(new URL(file, import.meta.url), 'utf8').includes('getTimerCount'),
)

// Functions are tested beside their source (`unit`; `timers` for those that count timers), the real process over real
// sockets (`e2e`), and its console in a real browser (`browser`). `vitest run --project unit` is the quick loop;
// `npm test` runs all of them.
export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            'gateway/src/**/*.test.ts',
            'ui/src/**/*.test.ts',
            'gateway/test/*.test.ts',
            'gateway/test/rules/**/*.test.ts',
            'gateway/test/golden/**/*.test.ts',
            'gateway/bench/**/*.test.ts',
            'scripts/**/*.test.ts',
          ],
          exclude: [...configDefaults.exclude, ...timerCounts],
          env,
          setupFiles,
          // Files of one process share modules: loading them takes as long as the tests.
          isolate: false,
          // Thousands of random cases, or a process, take a machine with other work several times as long as an idle one.
          testTimeout: 60_000,
          // On two processors the default is one worker, and projects of one worker go last.
          maxWorkers: '100%',
        },
      },
      {
        test: { name: 'timers', include: timerCounts, env, setupFiles, maxWorkers: '100%' },
      },
      {
        test: {
          name: 'e2e',
          include: ['gateway/test/{e2e,conformance,security,soak}/**/*.test.ts'],
          globalSetup: 'gateway/test/support/bundle.ts',
          env,
          setupFiles,
          // Several threads for each gateway, and two gateways at a time: a start takes long on a busy machine.
          testTimeout: 120_000,
          hookTimeout: 90_000,
          // Files wait for processes, time limits and each other's turns about a third of the time: one more than two
          // processors. And the unit tests go first, so that their load does not stretch waits.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'browser',
          include: ['gateway/test/browser/**/*.test.ts'],
          globalSetup: ['gateway/test/support/bundle.ts', 'gateway/test/support/browser/chromium.ts'],
          env,
          setupFiles,
          // Pages load in tenths of a second; a busy machine takes much longer.
          testTimeout: 120_000,
          hookTimeout: 90_000,
          // A browser has several processes, beside those of the gateway.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
