import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take longer than their size suggests, by which files without earlier results are sorted. */
const slow = [
  'soak/changes',
  'soak/soak',
  'browser/every-page',
  'browser/observe',
  'browser/tools',
  'browser/hostile-data',
  'e2e/documented-commands',
  'e2e/bench',
  'e2e/mcp-sessions',
  'e2e/quickstart',
  'e2e/limits-shared',
  'e2e/budgets-replicas',
  'e2e/console-state',
  'conformance/conformance',
]

/** Starts the slow files first, so that none of them runs alone at the end. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSlow = ({ moduleId }: TestSpecification) =>
      slow.some((name) => moduleId.endsWith(`/gateway/test/${name}.test.ts`))
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}
