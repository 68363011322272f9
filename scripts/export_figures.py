"""Rule export_figures: write the charts of a study for papers, results/studies/<name>/figures/."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    import shutil
    from pathlib import Path

    from ttf.display.charts.saving import static_picture
    from ttf.engine.process.fonts import hide_system_fonts
    from ttf.page.publish.files import published_path, read_chart_texts
    from ttf.page.render.pictures import render_pdf

    hide_system_fonts()
    folder, captions = Path(snakemake.output.figures), []
    texts_by_chart = read_chart_texts(map(Path, snakemake.input.indexes))
    for source in map(Path, snakemake.input.products):
        if source.suffix != ".svg" or (texts := texts_by_chart[f"{source.parent}/{source.stem}"])["empty"]:
            continue
        # <trace>/<chart>, without the folder figures/ between them.
        path = Path(published_path(source, folder.parent))
        target = folder / path.parents[1] / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.with_suffix(".pdf").write_bytes(render_pdf(static_picture(source)))
        captions.append(" ".join(f"{path.parents[1] / path.stem}: {texts['title']}. {texts['caption']}".split()))
    (folder / "captions.txt").write_text("\n\n".join(captions) + "\n", encoding="utf-8")
    return f"{len(captions)} charts as PDF and SVG in {folder}"


run_rule(main, snakemake)
