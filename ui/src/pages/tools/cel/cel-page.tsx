import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { useCelEvaluation, useCelFacts } from '../../../api/tools/cel-evaluation.ts'
import { Button } from '../../../components/action/button.tsx'
import { CopyButton } from '../../../components/action/copy-button.tsx'
import { ErrorState } from '../../../components/feedback/error-state.tsx'
import { SkeletonLines } from '../../../components/feedback/skeleton.tsx'
import { Select } from '../../../components/form/select.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { Page } from '../../../components/layout/page.tsx'
import { CelInput } from '../../../editors/cel/cel-input.tsx'
import { useCelVocabulary } from '../../../editors/cel/vocabulary.ts'
import { Prose } from '../../../schema-form/frame/prose.tsx'
import { examples, firstExpression } from './examples.ts'
import { FactsEditor } from './facts-editor.tsx'
import { RequestChoice } from './request-choice.tsx'
import { Result } from './result.tsx'
import { useDelayed } from './use-delayed.ts'
import { VariableList } from './variable-list.tsx'

const defaultScope = 'http'
const evaluationDelayMs = 250

/** Expressions with their variables, facts and value. */
export default function CelPage() {
  const [parameters, setParameters] = useSearchParams()
  const scope = parameters.get('scope') ?? defaultScope
  const requestId = parameters.get('request') ?? undefined
  const [expression, setExpression] = useState(parameters.get('expression') ?? firstExpression)
  const [edited, setEdited] = useState<unknown>()
  const vocabulary = useCelVocabulary()
  const loaded = useCelFacts(scope, requestId)
  const facts = edited ?? loaded.data?.facts
  const settled = useDelayed(expression, evaluationDelayMs)
  const evaluation = useCelEvaluation(settled, scope, useDelayed(facts, evaluationDelayMs))
  const current = vocabulary.data?.scopes.find(({ name }) => name === scope)

  const change = (entries: Readonly<Record<string, string | undefined>>) => {
    setEdited(undefined)
    setParameters(
      (before) => {
        const next = new URLSearchParams(before)
        for (const [name, value] of Object.entries(entries))
          if (value === undefined || value === '') next.delete(name)
          else next.set(name, value)
        return next
      },
      { replace: true },
    )
  }
  const edit = (text: string) => {
    setExpression(text)
    setParameters(
      (before) => {
        const next = new URLSearchParams(before)
        next.set('expression', text)
        return next
      },
      { replace: true },
    )
  }
  return (
    <Page
      title="CEL playground"
      about="Try expressions of rules, limits, budgets and routing over sample facts, or over those of a recorded request."
      actions={<CopyButton withText text={expression} label="Copy the expression" />}
    >
      <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,1fr)_24rem]">
        <div className="min-w-0 space-y-6">
          <Card
            title="Expression"
            about={current && <Prose text={current.doc} />}
            actions={
              <Select
                aria-label="Place of the expression"
                className="w-52"
                value={scope}
                options={(vocabulary.data?.scopes ?? [{ name: scope }]).map(({ name }) => ({
                  value: name,
                  label: labels[name] ?? name,
                }))}
                onChange={(next) => change({ scope: next === defaultScope ? undefined : next })}
              />
            }
          >
            <div className="space-y-4">
              <CelInput label="Expression" value={expression} scope={scope} onChange={edit} />
              <div className="flex flex-wrap gap-1.5">
                {(examples[scope] ?? []).map((example) => (
                  <Button key={example.label} size="small" onClick={() => edit(example.expression)}>
                    {example.label}
                  </Button>
                ))}
              </div>
              <Result
                result={settled.trim() === '' ? undefined : evaluation.data}
                busy={evaluation.isFetching || settled !== expression}
              />
              {evaluation.error && <ErrorState error={evaluation.error} />}
            </div>
          </Card>
          <Card title="Facts" about="The values that the expression sees. Edit them to try another case.">
            <div className="space-y-4">
              <RequestChoice
                value={requestId}
                onChange={(request) => change({ request })}
                missing={loaded.data?.missing ?? []}
              />
              {loaded.error ? (
                <ErrorState error={loaded.error} onRetry={() => change({ request: undefined })} />
              ) : loaded.data === undefined ? (
                <SkeletonLines count={6} />
              ) : (
                <FactsEditor key={`${scope} ${requestId}`} facts={loaded.data.facts} onChange={setEdited} />
              )}
            </div>
          </Card>
        </div>
        <Card title="Variables" about="A click inserts the name at the end of the expression.">
          {vocabulary.error ? (
            <ErrorState error={vocabulary.error} onRetry={() => void vocabulary.refetch()} />
          ) : current === undefined ? (
            <SkeletonLines count={6} />
          ) : (
            <>
              <VariableList
                variables={current.variables}
                onInsert={(text) => edit(`${expression}${/[\s(!]$|^$/.test(expression) ? '' : ' '}${text}`)}
              />
              <h3 className="mt-5 mb-1 text-sm">Functions</h3>
              <p className="font-mono text-xs leading-relaxed break-words text-ink-soft">
                {(vocabulary.data?.functions ?? []).map(({ name }) => name).join('  ')}
              </p>
            </>
          )}
        </Card>
      </div>
    </Page>
  )
}

const labels: Readonly<Record<string, string>> = {
  http: 'Gateways and routes',
  llm: 'LLM requests',
  llmRouting: 'Virtual models',
  llmCost: 'Token costs',
  guardHeaders: 'Headers of guards',
  mcp: 'MCP requests',
  mcpItem: 'MCP tools and prompts',
  ui: 'Console',
  credential: 'Credential location',
}
