import { writeFileSync } from 'node:fs'
import type { Reporter, TestCase } from 'vitest/node'

/**
 * Vitest reporter: writes the full names of tests that passed only on retry to the file $RETRIED_TESTS, one
 * per line.
 */
export default class RetriedReporter implements Reporter {
  private readonly names: string[] = []

  onTestCaseResult(test: TestCase): void {
    const retries = test.diagnostic()?.retryCount ?? 0
    if (retries > 0 && test.ok()) this.names.push(`${test.module.relativeModuleId} > ${test.fullName}`)
  }

  onTestRunEnd(): void {
    const file = process.env['RETRIED_TESTS']
    if (file) writeFileSync(file, this.names.map((name) => `${name}\n`).join(''))
  }
}
