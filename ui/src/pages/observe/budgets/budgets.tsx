import { Wallet } from 'lucide-react'
import { useSearchParams } from 'wouter'
import { useBudgets } from '../../../api/budgets.ts'
import { Button, ButtonLink } from '../../../components/action/button.tsx'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { Pager } from '../../../components/data/pager.tsx'
import { EmptyState } from '../../../components/feedback/empty-state.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { SearchInput } from '../../../components/form/search-input.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { BudgetTable } from './budget-table.tsx'

const pageSize = 50

const snippet = `llm:
  policies:
    budgets:
      - name: team
        limit: { usd: 500 }
        window: month
        key: apiKey.group
        warnAt: 0.8
`

/** State of all budgets, those closest to their limit first. */
export default function Budgets() {
  const [parameters, setParameters] = useSearchParams()
  const [budget, value, cursor] = ['budget', 'value', 'cursor'].map(
    (name) => parameters.get(name) ?? undefined,
  )
  const { data, error, isPending, isPlaceholderData, refetch } = useBudgets({
    budget,
    value,
    cursor,
    limit: pageSize,
  })
  const set = (name: string, text: string, replace = false) =>
    setParameters(
      (current) => {
        const next = new URLSearchParams(current)
        if (name !== 'cursor') next.delete('cursor')
        if (text === '') next.delete(name)
        else next.set(name, text)
        return next
      },
      { replace },
    )
  const isFiltered = budget !== undefined || value !== undefined
  const rows = data?.budgets ?? []
  return (
    <Page
      title="Budgets"
      about="Amounts of money and tokens in their windows, those closest to their limit first."
      actions={<ButtonLink href="/llm/policies">Edit budgets</ButtonLink>}
    >
      <div className="flex flex-wrap gap-2">
        <SearchInput
          value={value ?? ''}
          label="Value of a budget"
          placeholder="Exact user, group or key"
          onChange={(text) => set('value', text, true)}
        />
        <SearchInput
          value={budget ?? ''}
          label="Name of a budget"
          placeholder="Exact name of a budget"
          onChange={(text) => set('budget', text, true)}
        />
      </div>
      <Card flush>
        {error ? (
          <div className="p-5">
            <ErrorState error={error} onRetry={() => refetch()} />
          </div>
        ) : isPending ? (
          <div className="p-5">
            <SkeletonLines count={6} />
          </div>
        ) : rows.length === 0 ? (
          <>
            <EmptyState
              icon={Wallet}
              title={isFiltered ? 'No budget matches' : 'No budgets yet'}
              action={
                isFiltered && (
                  <Button onClick={() => setParameters(new URLSearchParams())}>Clear filters</Button>
                )
              }
            >
              {isFiltered
                ? 'A value has a budget from its first request in a window on.'
                : 'A budget refuses requests above an amount of money or tokens, before they reach a provider. Add one to the configuration, or to a key.'}
            </EmptyState>
            {!isFiltered && (
              <div className="mx-auto max-w-xl px-5 pb-8">
                <CodeBlock text={snippet} label="configuration" />
              </div>
            )}
          </>
        ) : (
          <>
            <BudgetTable budgets={rows} now={data?.observedAt ?? Date.now()} busy={isPlaceholderData} />
            <Pager
              shown={rows.length}
              onPrevious={cursor === undefined ? undefined : () => history.back()}
              onNext={data?.nextCursor ? () => set('cursor', data.nextCursor ?? '') : undefined}
            />
          </>
        )}
      </Card>
    </Page>
  )
}
