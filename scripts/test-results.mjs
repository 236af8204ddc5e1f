// Reads the JSON report of Vitest for `.ci/run`. Plain JavaScript, because a system Node 20 may run it:
// `node scripts/test-results.mjs COMMAND REPORT`. Commands:
//   count   prints "PASSED FAILED"; a file that could not run counts as a failed test
//   files   prints the files with failures, one per line, relative to the project
//   list    prints the failed tests with the first lines of their errors
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const errorLines = 12

const [command, file] = process.argv.slice(2)
const report = JSON.parse(readFileSync(file, 'utf8'))
const failures = failuresOf(report)

if (command === 'count') {
  process.stdout.write(`${report.numPassedTests} ${failures.length}\n`)
} else if (command === 'files') {
  for (const path of new Set(failures.map((failure) => failure.path))) process.stdout.write(`${path}\n`)
} else {
  for (const { path, name, error } of failures) {
    const lines = error.split('\n').slice(0, errorLines)
    process.stdout.write(`${path} > ${name}\n${lines.map((line) => `    ${line.slice(0, 300)}\n`).join('')}`)
  }
}

/** The failed tests, and files that failed outside of a test: [{path, name, error}]. */
function failuresOf({ testResults }) {
  return testResults.flatMap((result) => {
    const path = relative(process.cwd(), result.name)
    const tests = result.assertionResults
      .filter((test) => test.status === 'failed')
      .map((test) => ({ path, name: test.fullName, error: test.failureMessages.join('\n') }))
    const outside = result.status === 'failed' && tests.length === 0
    return outside ? [{ path, name: '(outside of a test)', error: result.message ?? '' }] : tests
  })
}
