import { defineConfig } from 'vitest/config'

// Two projects: functions tested beside their source, and the real process over real sockets. `vitest run --project unit`
// is the quick loop; `npm test` runs both.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            'gateway/src/**/*.test.ts',
            'gateway/test/*.test.ts',
            'gateway/test/golden/**/*.test.ts',
            'gateway/bench/**/*.test.ts',
            'scripts/*.test.ts',
          ],
          testTimeout: 10_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['gateway/test/{e2e,conformance,soak}/**/*.test.ts'],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          // Each file starts processes of its own: more at once than processors only makes waits longer. And the unit tests
          // go first, so that their load does not stretch waits either.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
