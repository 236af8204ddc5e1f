import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Download, RefreshCw } from 'lucide-react'
import { useCallback, useRef, useState } from 'react'
import { ApiError, api } from '../../../api/client.ts'
import {
  type ConfigFile,
  checkConfigFile,
  type FileCheck,
  type FileMistake,
  fetchConfigFile,
  writeConfigFile,
} from '../../../api/tools/config-file.ts'
import { useMayChange } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { messageOf } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { toast } from '../../../components/feedback/toasts.tsx'
import { Card } from '../../../components/layout/card.tsx'
import { CodeEditor } from '../../../editors/code-editor.tsx'
import { UnsavedGuard } from '../../../save/unsaved.tsx'
import type { JsonSchema } from '../../../schema-form/model/schema.ts'
import { suggestYaml } from '../../../schema-form/yaml/yaml-suggestions.ts'
import { FileConflict } from './file-conflict.tsx'
import { FileReview } from './file-review.tsx'
import { MistakeList } from './mistake-list.tsx'
import { rangesOf } from './text-lines.ts'

type FileEditorProps = {
  readonly file: ConfigFile
  readonly isReloading: boolean
  onReload(): void
}

type Step =
  | { readonly kind: 'review'; readonly check: FileCheck; readonly base: ConfigFile; readonly text: string }
  | { readonly kind: 'conflict'; readonly theirs: ConfigFile }

/** The text of the file: checked by the gateway while it is typed, compared before it is saved. */
export function FileEditor({ file, isReloading, onReload }: FileEditorProps) {
  const [text, setText] = useState(file.text)
  const [mistakes, setMistakes] = useState<readonly FileMistake[]>([])
  const [base, setBase] = useState(file)
  const [step, setStep] = useState<Step>()
  const [message, setMessage] = useState<string>()
  const [busy, setBusy] = useState(false)
  const mayChange = useMayChange() && !file.readOnly
  const queries = useQueryClient()
  const schema = useConfigSchema()
  const latest = useRef(file.text)
  const dirty = text !== base.text

  const check = useCallback(async (next: string) => {
    const found = (await checkConfigFile(next)).mistakes
    if (latest.current === next) setMistakes(found)
    return rangesOf(next, found)
  }, [])
  const complete = useCallback(
    (next: string, offset: number) => schema && suggestYaml(next, offset, schema),
    [schema],
  )
  const edit = (next: string) => {
    latest.current = next
    setText(next)
  }
  /** Runs a step of the save. A newer file becomes the conflict, another refusal a message. */
  const attempt = async (run: () => Promise<void>) => {
    setBusy(true)
    setMessage(undefined)
    try {
      await run()
    } catch (error) {
      if (error instanceof ApiError && error.status === 412)
        setStep({ kind: 'conflict', theirs: await fetchConfigFile() })
      else {
        setStep(undefined)
        setMessage(messageOf(error))
      }
    } finally {
      setBusy(false)
    }
  }
  const review = (next: string, from: ConfigFile) =>
    attempt(async () => {
      const result = await checkConfigFile(next)
      setMistakes(result.mistakes)
      if (result.mistakes.length > 0) setStep(undefined)
      else setStep({ kind: 'review', check: result, base: from, text: next })
    })
  const save = (next: string, from: ConfigFile) =>
    attempt(async () => {
      const { revision, needsRestart } = await writeConfigFile(next, from.revision)
      setBase({ ...from, text: next, revision })
      setStep(undefined)
      toast('good', needsRestart ? 'Saved; some settings apply after a restart' : 'Saved and active')
      await queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'config-file' })
    })
  return (
    <div className="space-y-4">
      {file.readOnly && <Notice title={sentence(file.reason ?? 'The file cannot be changed here')} />}
      {message && <Notice tone="bad" title={message} />}
      <Card
        title={<span className="font-mono text-xs break-all">{file.path}</span>}
        about={
          file.readOnly ? 'Changes are checked here, not saved.' : 'Checked by the gateway while you type.'
        }
        actions={
          <>
            <Button size="small" icon={RefreshCw} busy={isReloading} disabled={dirty} onClick={onReload}>
              Reload
            </Button>
            <Button size="small" icon={Download} onClick={() => download(file.path, text)}>
              Download
            </Button>
          </>
        }
      >
        <CodeEditor
          language="yaml"
          size="tall"
          label="Configuration file"
          value={text}
          invalid={mistakes.length > 0}
          check={check}
          complete={complete}
          onChange={edit}
        />
        <MistakeList mistakes={mistakes} />
      </Card>
      {mayChange && (
        <div
          data-bottom-bar
          className="sticky bottom-0 z-10 flex flex-wrap items-center justify-end gap-3 border-t border-line bg-canvas py-3"
        >
          <span role="status" className="mr-auto text-sm text-ink-soft">
            {!dirty ? 'No changes' : mistakes.length > 0 ? 'Mistakes prevent saving' : 'Not saved yet'}
          </span>
          <Button disabled={!dirty || busy} onClick={() => edit(base.text)}>
            Discard
          </Button>
          <Button tone="primary" disabled={!dirty} busy={busy} onClick={() => void review(text, base)}>
            Review and save
          </Button>
        </div>
      )}
      {step?.kind === 'review' && (
        <FileReview
          {...step}
          before={step.base.text}
          after={step.text}
          busy={busy}
          onCancel={() => setStep(undefined)}
          onConfirm={() => void save(step.text, step.base)}
        />
      )}
      {step?.kind === 'conflict' && (
        <FileConflict
          base={base.text}
          mine={text}
          theirs={step.theirs.text}
          busy={busy}
          onCancel={() => setStep(undefined)}
          onChoose={(choice) => {
            edit(choice)
            setBase(step.theirs)
            if (choice === step.theirs.text) setStep(undefined)
            else void review(choice, step.theirs)
          }}
        />
      )}
      <UnsavedGuard dirty={dirty && mayChange && !busy} />
    </div>
  )
}

/** JSON Schema of the configuration file, for completion. */
function useConfigSchema(): JsonSchema | undefined {
  const { data } = useQuery({
    queryKey: ['config-schema'],
    queryFn: ({ signal }) => api<JsonSchema>('/api/config/schema', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  return data
}

/** A message of the gateway at the start of a line. */
function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

function download(path: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }))
  const link = document.createElement('a')
  link.href = address
  link.download = path.split(/[\\/]/).at(-1) ?? 'tollgate.yaml'
  link.click()
  URL.revokeObjectURL(address)
}
