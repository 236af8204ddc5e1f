import { Download } from 'lucide-react'
import { useId, useState } from 'react'
import { useKindSchema } from '../../../api/resources.ts'
import { useWhoami } from '../../../api/whoami.ts'
import { Button } from '../../../components/action/button.tsx'
import { CodeBlock } from '../../../components/data/code-block.tsx'
import { messageOf } from '../../../components/feedback/error-state.tsx'
import { Notice } from '../../../components/feedback/notice.tsx'
import { Dialog } from '../../../components/layout/dialog.tsx'
import { formatNumber } from '../../../format/number.ts'
import { useSave } from '../../../save/save.tsx'
import { providerKinds } from '../models/provider-kinds.ts'
import type { CatalogRecord } from './catalog-edit.ts'
import { type ImportedCatalog, readPriceList } from './import-catalog.ts'
import { ownRecord, useCatalogRecord } from './use-catalog.ts'

/** Larger files are refused; public lists have about 2 MB. */
const maxFileBytes = 20_000_000
const fileName = 'prices.json'

/**
 * Reads a price list that the user has downloaded. With a database it becomes the base catalog; otherwise the
 * user stores it as a file beside the configuration. Neither browser nor gateway fetch it.
 */
export function ImportDialog({ onClose }: { onClose(): void }) {
  const id = useId()
  const schema = useKindSchema('llm.provider')
  const [imported, setImported] = useState<ImportedCatalog>()
  const { data: whoami } = useWhoami()
  const found = useCatalogRecord()
  const { save, busy, dialog } = useSave('modelCatalog')
  const [message, setMessage] = useState<string>()
  const hasDatabase = whoami?.storage.mode === 'hybrid'

  const read = async (file: File | undefined) => {
    setMessage(undefined)
    if (file === undefined) return setImported(undefined)
    if (file.size > maxFileBytes)
      return setImported({ kind: 'invalid', message: 'The file is larger than 20 MB.' })
    try {
      setImported(readPriceList(await file.text(), providerKinds(schema.data ?? {})))
    } catch (error) {
      setImported({ kind: 'invalid', message: messageOf(error) })
    }
  }
  const store = async () => {
    if (imported?.kind !== 'catalog' || found.data === undefined || whoami === undefined) return
    const record = ownRecord(found.data, whoami)
    const value: CatalogRecord = { ...record?.value, base: imported.catalog }
    const outcome = await save({ record, value })
    if (outcome.kind === 'saved') onClose()
    if (outcome.kind === 'refused') setMessage(outcome.message)
  }

  return (
    <>
      <Dialog
        open
        title="Import price list"
        about="A file of this computer: a catalog, api.json of models.dev, or model_prices_and_context_window.json of LiteLLM. Custom prices stay."
        onOpenChange={(open) => open || onClose()}
        footer={
          <>
            <Button onClick={onClose}>Cancel</Button>
            {imported?.kind === 'catalog' &&
              (hasDatabase ? (
                <Button tone="primary" busy={busy} onClick={() => void store()}>
                  Review and save
                </Button>
              ) : (
                <Button tone="primary" icon={Download} onClick={() => download(imported.catalog)}>
                  Download {fileName}
                </Button>
              ))}
          </>
        }
      >
        <div className="space-y-4">
          {message && <Notice tone="bad" title={message} />}
          <div>
            <label htmlFor={id} className="mb-1 block text-sm font-medium">
              File
            </label>
            <input
              id={id}
              type="file"
              accept=".json,application/json"
              disabled={schema.data === undefined}
              className="block w-full rounded-md border border-line-strong bg-surface p-1.5 text-sm file:mr-3 file:rounded file:border-0 file:bg-hover file:px-2.5 file:py-1 file:text-sm file:text-ink"
              onChange={(event) => void read(event.target.files?.[0])}
            />
          </div>
          {imported?.kind === 'invalid' && <Notice tone="bad" title={imported.message} />}
          {imported?.kind === 'catalog' && (
            <>
              <Notice
                tone="good"
                title={`${formatNumber(imported.models)} models with prices (${imported.format})`}
              >
                {Object.entries(imported.catalog.providers ?? {})
                  .map(([name, { models = {} }]) => `${name} ${formatNumber(Object.keys(models).length)}`)
                  .join(', ')}
              </Notice>
              {!hasDatabase && (
                <div className="space-y-2 text-sm text-ink-soft">
                  <p>
                    Without a database, large catalogs belong into a file of their own. Store the download
                    beside the configuration, and name it there, before catalogs with your own prices:
                  </p>
                  <CodeBlock
                    label="configuration"
                    text={`config:\n  modelCatalog:\n    - file: ${fileName}`}
                  />
                </div>
              )}
            </>
          )}
        </div>
      </Dialog>
      {dialog}
    </>
  )
}

function download(catalog: object): void {
  const address = URL.createObjectURL(new Blob([JSON.stringify(catalog)], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = address
  link.download = fileName
  link.click()
  URL.revokeObjectURL(address)
}
